// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheImageWithoutArguments checks what a user sees who starts the image without a command line, or kube-scheduler
// without a flag. It catches an entry point that waits for something, and an error that does not name what is missing.
func TestTheImageWithoutArguments(t *testing.T) {
	i := kumikiImage(t)
	for _, how := range []isolation{permitted(), plain} {
		p := start(t, i.run(t, i.entrypoint...), how)
		if code := p.wait(); code != 0 || !strings.Contains(p.out.String(), "kumiki scheduler --config FILE") {
			t.Errorf("isolation %s: without arguments it ends with %d and prints\n%s", how, code, p.out.String())
		}
		p = start(t, i.run(t, "kube-scheduler"), how)
		if code := p.wait(); code != 1 || !strings.Contains(p.out.String(), "kubeconfig") {
			t.Errorf("isolation %s: kube-scheduler without flags ends with %d and prints\n%s", how, code, p.out.String())
		}
	}
}

// TestTheImageEndsDuringItsStart sends SIGTERM while the scheduler waits for an API server that accepts connections and
// answers nothing. The kernel gives the first process of a container no default handlers, so without one of its own it
// would stay until the kubelet kills it. It catches a start that does not end with its context.
func TestTheImageEndsDuringItsStart(t *testing.T) {
	i := kumikiImage(t)
	for _, how := range []isolation{permitted(), plain} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://" + l.Addr().String() +
			"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := i.run(t, "kube-scheduler", "--kubeconfig=/etc/kubeconfig", "--secure-port=0", "--leader-elect=false")
		c.Mounts = map[string]string{"/etc/kubeconfig": kubeconfig}
		p := start(t, c, how)
		connection, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if code := p.end(); code != 0 {
			t.Errorf("isolation %s: after SIGTERM during its start it ends with %d", how, code)
		}
	}
}

// TestTheImageAsARestrictedPod runs the image as the Deployments do: as the first process of its container, with a
// read-only root file system, and, beyond that, without /tmp; as user 65532 where this test may change the user. It
// catches a program that writes a file before it schedules. A second replica that waits for the lease ends at once.
func TestTheImageAsARestrictedPod(t *testing.T) {
	i := kumikiImage(t)
	cluster := newCluster(t)
	how := permitted()
	begin := func() *process {
		c := i.run(t, "kube-scheduler", "--kubeconfig=/etc/kubeconfig", "--bind-address=127.0.0.1", "--secure-port=0")
		if err := os.Remove(filepath.Join(c.Rootfs, "tmp")); err != nil {
			t.Fatal(err)
		}
		c.ReadOnly = true
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		text, err := os.ReadFile(cluster.SchedulerKubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if how == asRoot {
			c.User = "65532:65532"
			if err := os.Chown(kubeconfig, 65532, 65532); err != nil {
				t.Fatal(err)
			}
		}
		c.Mounts = map[string]string{"/etc/kubeconfig": kubeconfig}
		return start(t, c, how)
	}
	leader := begin()
	cluster.schedules("restricted")
	standby := begin()
	if !within(t, func() bool { return strings.Contains(standby.out.String(), "Attempting to acquire leader lease") }) {
		t.Fatal("the second replica does not ask for the lease")
	}
	if code := standby.end(); code != 0 {
		t.Errorf("the replica that waits for the lease ends with %d", code)
	}
	if code := leader.end(); code != 0 {
		t.Errorf("the leader ends with %d", code)
	}
}
