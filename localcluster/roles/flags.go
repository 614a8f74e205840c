// SPDX-License-Identifier: Apache-2.0

package roles

import (
	"fmt"
	"time"
)

// Settings are the facts from which the flags of the upstream programs follow. File names are
// relative to the data directory, which is every child's working directory: the path of a unix
// socket is limited to about 100 bytes.
type Settings struct {
	// Port of the API server on 127.0.0.1.
	Port int
	// FeatureGates and RuntimeConfig are passed on as they are; empty = none.
	FeatureGates  string
	RuntimeConfig string
	// Fsync makes etcd wait for the disk, as a real one does.
	Fsync bool
	// NodeMonitorGrace is how long a node may be silent before it is NotReady.
	NodeMonitorGrace time.Duration
	// APIServerArgs and ControllersArgs are added at the end, so that they win.
	APIServerArgs   []string
	ControllersArgs []string
}

// The files of the data directory that flags name.
const (
	PKIDir                = "pki"
	KubeconfigDir         = "kubeconfig"
	ControllersKubeconfig = KubeconfigDir + "/controllers"
	etcdSocket            = "unix://etcd.sock"
	etcdPeerSocket        = "unix://etcd-peer.sock"
	// etcd requires host:port in what it advertises to other members and clients. A single
	// member advertises it to no other.
	etcdAdvertised = "http://127.0.0.1:2379"
	etcdPeer       = "http://127.0.0.1:2380"
	serviceCIDR    = "10.96.0.0/16"
)

// SocketFiles are the unix sockets that a killed child leaves behind.
func SocketFiles() []string { return []string{"etcd.sock", "etcd-peer.sock"} }

// etcdQuotaBytes is etcd's largest suggested size; the default of 2 GiB is
// reached by a benchmark of half an hour.
const etcdQuotaBytes = 8 << 30

// EtcdArgs are the flags of etcd.
func EtcdArgs(s Settings) []string {
	args := []string{
		"--name=kumiki",
		"--data-dir=etcd",
		"--listen-client-urls=" + etcdSocket,
		"--advertise-client-urls=" + etcdAdvertised,
		"--listen-peer-urls=" + etcdPeerSocket,
		"--initial-advertise-peer-urls=" + etcdPeer,
		"--initial-cluster=kumiki=" + etcdPeer,
		"--log-level=warn",
		fmt.Sprintf("--quota-backend-bytes=%d", etcdQuotaBytes),
	}
	if !s.Fsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return args
}

// APIServerArgs are the flags of kube-apiserver. Admission plugins are the
// default ones: priority, limit ranges, quota, node labels of pods and default
// tolerations all change what a scheduler sees.
func APIServerArgs(s Settings) []string {
	args := []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.Port),
		"--etcd-servers=" + etcdSocket,
		// JSON is the default; production clusters store protobuf.
		"--storage-media-type=application/vnd.kubernetes.protobuf",
		"--authorization-mode=Node,RBAC",
		"--cert-dir=" + PKIDir,
		"--tls-cert-file=" + PKIDir + "/apiserver.crt",
		"--tls-private-key-file=" + PKIDir + "/apiserver.key",
		"--client-ca-file=" + PKIDir + "/ca.crt",
		"--requestheader-client-ca-file=" + PKIDir + "/front-proxy-ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + PKIDir + "/front-proxy-client.crt",
		"--proxy-client-key-file=" + PKIDir + "/front-proxy-client.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + PKIDir + "/sa.pub",
		"--service-account-signing-key-file=" + PKIDir + "/sa.key",
		"--service-cluster-ip-range=" + serviceCIDR,
		// Nothing routes to the service address; the API server refuses a loopback address.
		"--advertise-address=192.0.2.1",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--event-ttl=15m",
		"--shutdown-delay-duration=0",
	}
	args = append(args, optional("--feature-gates", s.FeatureGates)...)
	args = append(args, optional("--runtime-config", s.RuntimeConfig)...)
	return append(args, s.APIServerArgs...)
}

// ControllersArgs are the flags of the controllers.
func ControllersArgs(s Settings) []string {
	args := []string{
		"--kubeconfig=" + ControllersKubeconfig,
		"--root-ca-file=" + PKIDir + "/ca.crt",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--concurrent-gc-syncs=10",
		// A cluster on one machine has no zones that fail, and thousands of
		// nodes that start at once must not read as an outage.
		"--node-eviction-rate=10",
		fmt.Sprintf("--node-monitor-grace-period=%s", s.NodeMonitorGrace),
	}
	args = append(args, optional("--feature-gates", s.FeatureGates)...)
	return append(args, s.ControllersArgs...)
}

func optional(flag, value string) []string {
	if value == "" {
		return nil
	}
	return []string{flag + "=" + value}
}
