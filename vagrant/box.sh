#!/bin/bash
# Makes a Vagrant box for libvirt of Debian's own packages: what `vagrant up` runs on where no box can be downloaded.
# usage: box.sh [options of disk.sh] FILE.box        then: vagrant box add --name debian-trixie FILE.box
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
die() { printf 'box: %s\n' "$*" >&2; exit 2; }
[ $# -ge 1 ] || die "usage: box.sh [options of disk.sh] FILE.box"
box=$(realpath "${!#}")
set -- "${@:1:$#-1}"

# Every box has Vagrant's published key, which `vagrant up` replaces by one of its own. Debian's package has it.
key=${MRCLAB_VAGRANT_KEY:-}
for known in /usr/share/rubygems-integration/all/gems/vagrant-*/keys/vagrant.pub /opt/vagrant/embedded/gems/*/keys/vagrant.pub; do
    [ -n "$key" ] || [ ! -e "$known" ] || key=$known
done
[ -n "$key" ] || die "Vagrant's published key is not here: apt-get install vagrant, or name its file in MRCLAB_VAGRANT_KEY"

work=$(mktemp -d "$(dirname "$box")/.box.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
"$here/disk.sh" "$@" --user vagrant --key "$key" "$work/box.img"
gib=$(qemu-img info --output=json "$work/box.img" | python3 -c 'import json, sys; print(-(-json.load(sys.stdin)["virtual-size"] // 2**30))')
printf '{"provider": "libvirt", "format": "qcow2", "virtual_size": %d}\n' "$gib" >"$work/metadata.json"
# The disk is compressed already.
tar -C "$work" -cf "$work/box" metadata.json box.img
mv "$work/box" "$box"
