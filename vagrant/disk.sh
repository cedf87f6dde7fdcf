#!/bin/bash
# Makes a bootable disk of Debian's own packages: stock kernel, SSH, one user who may use sudo. With --lab, mrclab is installed.
# usage: disk.sh [--release bookworm|trixie] [--user NAME] [--key FILE] [--size 12G] [--lab] DISK.qcow2
#   --key   public SSH key that may log in as the user; without it the password is the user's name
#   --lab   installs this checkout as ~/mrclab, with all that `./lab install` brings
# environment: MRCLAB_DEBIAN_MIRROR (http://deb.debian.org/debian), MRCLAB_CACHE (a folder that keeps downloaded packages),
#   and with --lab what provision.sh takes: MRCLAB_CA, http_proxy, https_proxy, no_proxy, PIP_INDEX_URL
# Needs root, because it mounts the disk that it fills.
set -euo pipefail
{ # read as a whole, so that an edit does not change a script that runs

here=$(cd "$(dirname "$0")" && pwd)
mirror=${MRCLAB_DEBIAN_MIRROR:-http://deb.debian.org/debian}
release=trixie user=lab key="" size=12G lab=""
say() { printf 'disk: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

while [ $# -gt 0 ]; do
    case $1 in
    --release) release=${2:?--release needs a name}; shift 2 ;;
    --user) user=${2:?--user needs a name}; shift 2 ;;
    --key) key=${2:?--key needs a file}; shift 2 ;;
    --size) size=${2:?--size needs a number}; shift 2 ;;
    --lab) lab=yes; shift ;;
    -h | --help) sed -n '2,8s/^# //p' "$0"; exit ;;
    -*) die "unknown option $1: valid are --release, --user, --key, --size, --lab" ;;
    *) break ;;
    esac
done
[ $# = 1 ] || die "one file to write is needed: disk.sh [options] DISK.qcow2"
disk=$(realpath "$1")
case $release in
bookworm | trixie) ;;
*) die "release $release is not known: bookworm (Debian 12) or trixie (Debian 13)" ;;
esac
[ -z "$key" ] || [ -r "$key" ] || die "--key $key cannot be read"
[ "$(id -u)" = 0 ] || die "needs root: it mounts the disk that it fills"
missing=""
for pair in debootstrap:debootstrap qemu-img:qemu-utils mkfs.ext4:e2fsprogs sfdisk:fdisk losetup:mount extlinux:extlinux; do
    command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
boot_record=/usr/lib/syslinux/mbr/mbr.bin
[ -r $boot_record ] || missing="$missing syslinux-common"
[ -z "$missing" ] || die "missing: apt-get install$missing"

work=$(mktemp -d "$(dirname "$disk")/.disk.XXXXXX")
root=$work/root
loop=""
clean_up() {
    # The innermost first; what was not mounted yet is no error.
    for place in dev/pts dev sys proc ""; do
        ! mountpoint -q "$root/$place" || umount "$root/$place" || umount -l "$root/$place"
    done
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say "an empty disk of $size"
truncate -s "$size" "$work/raw"
# The partition begins at 1 MiB, where every partitioning tool puts the first.
echo 'start=2048, type=83, bootable' | sfdisk --quiet --label dos "$work/raw"
dd if=$boot_record of="$work/raw" conv=notrunc bs=440 count=1 status=none
loop=$(losetup --find --show --offset 1MiB "$work/raw")
# extlinux reads no 64-bit ext4.
mkfs.ext4 -q -L mrclab -O ^64bit,^metadata_csum "$loop"
mkdir "$root"
mount "$loop" "$root"

include=ca-certificates,dbus,ifupdown,iproute2,isc-dhcp-client,linux-image-amd64,openssh-server,python3,rsync,sudo,systemd-sysv
say "Debian $release from $mirror"
debootstrap --variant=minbase ${MRCLAB_CACHE:+--cache-dir="$(realpath "$MRCLAB_CACHE")"} --include=$include \
    "$release" "$root" "$mirror" >"$work/debootstrap.log" || {
    tail -20 "$work/debootstrap.log" >&2
    die "debootstrap failed"
}

say "user $user, network, boot loader"
security=${MRCLAB_DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
cat >"$root/etc/apt/sources.list" <<LIST
deb http://deb.debian.org/debian $release main
deb http://deb.debian.org/debian $release-updates main
deb $security $release-security main
LIST
echo "LABEL=mrclab / ext4 errors=remount-ro,noatime 0 1" >"$root/etc/fstab"
echo mrclab >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 mrclab\n::1 localhost\n' >"$root/etc/hosts"
printf 'auto lo eth0\niface lo inet loopback\niface eth0 inet dhcp\n' >"$root/etc/network/interfaces"
chroot "$root" useradd --create-home --shell /bin/bash "$user"
echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
chmod 440 "$root/etc/sudoers.d/$user"
if [ -n "$key" ]; then
    install -d -m 700 "$root/home/$user/.ssh"
    install -m 600 "$key" "$root/home/$user/.ssh/authorized_keys"
    chroot "$root" chown -R "$user:$user" "/home/$user/.ssh"
else
    echo "$user:$user" | chroot "$root" chpasswd
fi
# Name look-ups of the other side would make every login wait where there is no name server.
# A password that is public is for the console only.
printf 'UseDNS no\nPasswordAuthentication no\n' >"$root/etc/ssh/sshd_config.d/mrclab.conf"

install -d "$root/boot/extlinux"
extlinux --install "$root/boot/extlinux" >/dev/null 2>&1
cat >"$root/boot/extlinux/extlinux.conf" <<CONF
DEFAULT linux
PROMPT 0
TIMEOUT 0
LABEL linux
  KERNEL /vmlinuz
  INITRD /initrd.img
  APPEND root=LABEL=mrclab ro net.ifnames=0 console=tty0 console=ttyS0
CONF

if [ -n "$lab" ]; then
    say "mrclab for $user (some minutes: packages of Debian and of Python)"
    for place in proc sys dev dev/pts; do mount --bind "/$place" "$root/$place"; done
    install -m 644 /etc/resolv.conf "$root/etc/resolv.conf"
    if [ -n "${MRCLAB_CA:-}" ]; then install -m 644 "$MRCLAB_CA" "$root/tmp/ca.crt"; fi
    install -d "$root/home/$user/mrclab"
    # What git knows, as it is in the work tree now: neither runs nor environments of this machine.
    git -C "$here/.." ls-files -z | tar -C "$here/.." --null --files-from=- -c | tar -C "$root/home/$user/mrclab" -x
    chroot "$root" chown -R "$user:$user" "/home/$user/mrclab"
    # Under the name of the machine that it will be, which sudo looks up.
    MRCLAB_CA=${MRCLAB_CA:+/tmp/ca.crt} unshare --uts sh -c 'hostname mrclab && exec chroot "$@"' - \
        "$root" "/home/$user/mrclab/vagrant/provision.sh" "/home/$user/mrclab" "$user"
    rm -f "$root/tmp/ca.crt"

    # A command for ./lab that QEMU hands over (boot.sh does), run at the end of booting.
    echo qemu_fw_cfg >"$root/etc/modules-load.d/mrclab.conf"
    cat >"$root/usr/local/sbin/mrclab-handed-over" <<RUN
#!/bin/bash
words=\$(cat /sys/firmware/qemu_fw_cfg/by_name/opt/mrclab/run/raw)
runuser -l $user -c "cd mrclab && ./lab \$words"
echo "mrclab: exit status \$?"
systemctl poweroff
RUN
    chmod 755 "$root/usr/local/sbin/mrclab-handed-over"
    cat >"$root/etc/systemd/system/mrclab-handed-over.service" <<UNIT
[Unit]
Description=A command for ./lab that QEMU handed over
After=network.target
# A login prompt that begins on this terminal hangs up whoever uses it.
Before=getty.target serial-getty@ttyS0.service
ConditionPathExists=/sys/firmware/qemu_fw_cfg/by_name/opt/mrclab/run/raw

[Service]
Type=oneshot
TTYPath=/dev/ttyS0
StandardOutput=tty
StandardError=tty
ExecStart=/usr/local/sbin/mrclab-handed-over

[Install]
WantedBy=multi-user.target
UNIT
    chroot "$root" systemctl enable --quiet mrclab-handed-over.service
fi
chroot "$root" apt-get clean
rm -rf "$root"/var/lib/apt/lists/* "$root/home/$user/.cache"
: >"$root/etc/resolv.conf"
: >"$root/etc/machine-id"
fstrim "$root" 2>/dev/null || true # a smaller file; not every kernel's loop devices can

for place in dev/pts dev sys proc ""; do
    ! mountpoint -q "$root/$place" || umount "$root/$place"
done
losetup -d "$loop"
loop=""
say "writing $disk"
qemu-img convert -c -O qcow2 "$work/raw" "$work/qcow2"
mv "$work/qcow2" "$disk"
say "done: $(du -h "$disk" | cut -f1), Debian $release, kernel $(sed -n 's/.*linux-image-\([0-9][^ ]*-amd64\).*/\1/p' "$work/debootstrap.log" | head -1)"
exit
}
