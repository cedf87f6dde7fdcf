#!/bin/bash
# Provisions an Ubuntu 24.04 machine for mrclab: p4lang's packages of BMv2 and p4c, then what ./lab installs.
# usage: provision.sh REPOSITORY USER
set -euo pipefail

repository=${1:?usage: provision.sh REPOSITORY USER}
user=${2:?usage: provision.sh REPOSITORY USER}
source_url=https://download.opensuse.org/repositories/home:/p4lang/xUbuntu_24.04

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates curl gnupg sudo >/dev/null

install -d -m 755 /etc/apt/keyrings
curl -fsSL "$source_url/Release.key" | gpg --dearmor --yes -o /etc/apt/keyrings/p4lang.gpg
echo "deb [signed-by=/etc/apt/keyrings/p4lang.gpg] $source_url/ /" >/etc/apt/sources.list.d/p4lang.list
apt-get update -qq
apt-get install -y -qq --no-install-recommends p4lang-bmv2 p4lang-p4c >/dev/null

# BMv2 is what this machine is for; `--set switch=embedded` chooses the other for one command.
cat >/etc/profile.d/mrclab.sh <<'END'
export MRCLAB_SWITCH=bmv2 MRCLAB_PLAN=tiny
export MRCLAB_VENV=$HOME/.mrclab-venv # the synced folder's .venv is the host's
END

# The synced folder belongs to the host: the environment goes beside it, not into it.
sudo -u "$user" -H sh -c ". /etc/profile.d/mrclab.sh && cd '$repository' && ./lab install"
