#!/bin/bash
# Boots a disk that `disk.sh --lab` made, in QEMU, with the machine's console in this terminal.
# usage: boot.sh DISK.qcow2                 log in as lab, password lab; `poweroff` ends it
#        boot.sh DISK.qcow2 run smoke       runs ./lab with these words, powers off, and exits with its status;
#                                           what the machine writes to its disk is then forgotten
# environment: MRCLAB_CPUS (4), MRCLAB_MEMORY in MiB (4096), MRCLAB_ACCEL (kvm where /dev/kvm can be opened, else tcg),
#   MRCLAB_SSH_PORT (2222): `ssh -p 2222 lab@127.0.0.1` from this machine, and scp for reports
set -euo pipefail

die() { printf 'boot: %s\n' "$*" >&2; exit 2; }
[ $# -ge 1 ] || die "usage: boot.sh DISK.qcow2 [words for ./lab]"
disk=$1
shift
[ -r "$disk" ] || die "$disk cannot be read: disk.sh --lab makes one"
command -v qemu-system-x86_64 >/dev/null || die "missing: apt-get install qemu-system-x86"
accel=${MRCLAB_ACCEL:-tcg}
[ -n "${MRCLAB_ACCEL:-}" ] || [ ! -w /dev/kvm ] || accel=kvm
case $accel in
kvm) processor=host ;;
# Older models than max make Linux mend their flaws, which makes a system call three times as slow.
tcg) processor=max accel=tcg,thread=multi ;;
*) die "MRCLAB_ACCEL=$accel is not known: kvm or tcg" ;;
esac

# QEMU separates options at commas, and takes two for one that is meant.
machine=(qemu-system-x86_64 -accel "$accel" -cpu "$processor" -smp "${MRCLAB_CPUS:-4}" -m "${MRCLAB_MEMORY:-4096}"
    -drive "file=${disk//,/,,},if=virtio,format=qcow2" -display none -serial mon:stdio -no-reboot
    -nic "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:${MRCLAB_SSH_PORT:-2222}-:22")
[ $# -gt 0 ] || exec "${machine[@]}"

# Quoted for the shell that runs the words in the machine.
words=$(mktemp)
trap 'rm -f "$words"' EXIT
trap 'exit 130' INT TERM
printf '%q ' "$@" >"$words"

# The machine reports on its console how the command ended.
status=2
while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in "mrclab: exit status "*) status=$(tr -cd 0-9 <<<"$line") ;; esac
done < <("${machine[@]}" -snapshot -fw_cfg "name=opt/mrclab/run,file=${words//,/,,}" </dev/null)
exit "$status"
