#!/bin/sh
# Builds a real Kubernetes control plane for `make test-kubernetes` from Debian's own source package (1.20.2).
#
#   tests/kubernetes_build.sh [FOLDER]     as root, on Debian 12; a quarter of an hour; default .kubernetes
set -eu
target=$(realpath -m "${1:-.kubernetes}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt-get update
apt-get install -y --no-install-recommends golang-go jq rsync etcd-server openssl dpkg-dev \
  golang-github-modern-go-reflect2-dev
# The configured mirror, for sources, in lists of their own.
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > "$work/src.sources"
mkdir -p "$work/lists" "$work/cache" "$work/home"
sources="-o Dir::Etc::sourcelist=$work/src.sources -o Dir::Etc::sourceparts=/dev/null"
sources="$sources -o Dir::State::lists=$work/lists -o Dir::Cache=$work/cache"
cd "$work"
apt-get $sources update
apt-get $sources source --download-only kubernetes
tar xzf kubernetes_*.orig.tar.gz
cd kubernetes-1.20.2
# The vendored reflect2 crashes with today's Go; Debian's own does not.
reflect=github.com/modern-go/reflect2
rm -f "vendor/$reflect"/*.go "vendor/$reflect"/*.s
cp "/usr/share/gocode/src/$reflect"/*.go "/usr/share/gocode/src/$reflect"/*.s "vendor/$reflect/"
export GOPATH="$PWD/.go" HOME="$work/home" CGO_ENABLED=0 GO111MODULE=off GOPROXY=off
mkdir -p .go/src/k8s.io
ln -s ../../.. .go/src/k8s.io/kubernetes
cd .go/src/k8s.io/kubernetes
nice make WHAT="cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler" \
  KUBE_GIT_TREE_STATE=archive KUBE_GIT_VERSION=v1.20.2 KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20
mkdir -p "$target"
cp _output/bin/kube-apiserver _output/bin/kube-controller-manager _output/bin/kube-scheduler "$target"
echo "built: $target"
