#!/bin/bash
# Makes a machine a lab: what `./lab install` brings and, on Ubuntu, BMv2 and p4c from p4lang's own packages.
# usage: provision.sh REPOSITORY USER    (as root; a second call changes nothing)
# environment, all of it optional:
#   http_proxy, https_proxy, no_proxy   kept in the machine: for apt, pip and the user's shell
#   MRCLAB_CA        certificates (PEM) of a proxy or mirror that signs with its own, as it is called inside the machine
#   PIP_INDEX_URL    another index of Python packages than pypi.org
#   MRCLAB_P4LANG    where p4lang's packages are, or "none" to leave them out
# Where p4lang's packages cannot be had, this says so and the machine's labs have embedded switches.
set -euo pipefail

repository=${1:?usage: provision.sh REPOSITORY USER}
user=${2:?usage: provision.sh REPOSITORY USER}
export DEBIAN_FRONTEND=noninteractive
say() { printf 'provision: %s\n' "$*"; }

# put FILE: writes standard input there, but only if that changes the file.
put() {
    local new
    new=$(cat && echo .) # the dot keeps the last line's end
    new=${new%.}
    [ -e "$1" ] && cmp -s "$1" - <<<"${new%$'\n'}" && return
    printf '%s' "$new" >"$1"
    say "wrote $1"
}

# install PACKAGE...: those that are missing, so that a second call needs no network.
install_packages() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing Debian packages: ${missing[*]}"
    apt-get update -qq || return
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

settings() {
    [ -z "${MRCLAB_CA:-}" ] || echo 'export PIP_CERT=/etc/ssl/certs/ca-certificates.crt'
    for name in http_proxy https_proxy no_proxy PIP_INDEX_URL; do
        [ -z "${!name:-}" ] || printf 'export %s=%q\n' "$name" "${!name}"
    done
    echo 'export MRCLAB_VENV=$HOME/.mrclab-venv # the .venv of a shared folder is the host'"'"'s'
}

# Boxes upgrade themselves when they start: wait for that instead of failing.
echo 'DPkg::Lock::Timeout "600";' | put /etc/apt/apt.conf.d/90mrclab
if [ -n "${http_proxy:-}" ]; then
    printf 'Acquire::http::Proxy "%s";\n' "$http_proxy" | put /etc/apt/apt.conf.d/90mrclab-proxy
    # sudo drops a caller's proxies, and `./lab` calls apt through it.
    echo 'Defaults env_keep += "http_proxy https_proxy no_proxy"' | put /etc/sudoers.d/mrclab-proxy
fi
install_packages ca-certificates curl gnupg sudo
certificates=/usr/local/share/ca-certificates/mrclab.crt
if [ -n "${MRCLAB_CA:-}" ] && ! cmp -s "$MRCLAB_CA" $certificates; then
    put $certificates <"$MRCLAB_CA"
    update-ca-certificates >/dev/null 2>&1
fi
settings | put /etc/profile.d/mrclab.sh

# A login shell, so that all of /etc/profile.d counts, as it will for the user.
as_user() { sudo -u "$user" -H bash -lc "cd '$repository' && $1"; }
as_user './lab install'

# --- p4lang's packages, which exist for Ubuntu 24.04 (and for none of Debian's living releases) ----------------------
p4lang_packages() {
    local url=${MRCLAB_P4LANG:-https://download.opensuse.org/repositories/home:/p4lang/xUbuntu_24.04}
    . /etc/os-release
    if [ "$url" = none ]; then
        say "BMv2 and p4c are left out, as MRCLAB_P4LANG=none asks"
    elif [ -z "${MRCLAB_P4LANG:-}" ] && [ "$ID $VERSION_ID" != "ubuntu 24.04" ]; then
        say "p4lang has no packages of BMv2 and p4c for $PRETTY_NAME"
    elif ! curl -fsSL --max-time 60 "$url/Release.key" -o "${key:=$(mktemp)}"; then
        say "$url cannot be reached"
    else
        install -d -m 755 /etc/apt/keyrings
        gpg --dearmor --yes -o /etc/apt/keyrings/p4lang.gpg <"$key"
        rm -f "$key"
        echo "deb [signed-by=/etc/apt/keyrings/p4lang.gpg] $url/ /" | put /etc/apt/sources.list.d/p4lang.list
        if ! install_packages p4lang-bmv2 p4lang-p4c; then
            say "p4lang's packages cannot be installed"
            rm -f /etc/apt/sources.list.d/p4lang.list # or every later apt-get update fails
        fi
    fi
}
# Doctor starts a switch to find out whether it was built with Thrift, without which its queues cannot be set.
bmv2_serves() {
    command -v simple_switch_grpc >/dev/null || return
    # Doctor's exit status is about all that a lab needs, root among it.
    { as_user './lab doctor --format json' || true; } | python3 -c 'import json, sys
sys.exit(not any(row["present"] for row in json.load(sys.stdin) if row["name"].startswith("BMv2 serves")))'
}

command -v simple_switch_grpc >/dev/null && command -v p4c >/dev/null || p4lang_packages
if bmv2_serves; then
    # BMv2 is what this machine is for, and `--set switch=embedded` chooses the other for one command. BMv2 takes several
    # times the processor time of the embedded switch and a process a switch, so the usual plan here is the small one.
    printf 'export MRCLAB_SWITCH=bmv2 MRCLAB_PLAN=tiny\n' | put /etc/profile.d/mrclab-bmv2.sh
    say "labs of this machine have BMv2 switches"
else
    rm -f /etc/profile.d/mrclab-bmv2.sh
    say "labs of this machine have embedded switches; './lab doctor' says what BMv2 takes"
fi
