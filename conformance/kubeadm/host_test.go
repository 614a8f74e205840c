// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

const (
	kubernetesVersion = "v1.37.1"
	schedulerConf     = "etc/kubernetes/scheduler.conf"
	manifest          = "etc/kubernetes/manifests/kube-scheduler.yaml"
	// advertised is an address of documentation: kubeadm refuses one on loopback, where the local cluster is.
	advertised = "192.0.2.1"
	// schedulerPort is kube-scheduler's own.
	schedulerPort = "10259"
)

// host is a control plane node: a directory with what kubeadm writes below /etc/kubernetes.
type host struct {
	*testing.T
	dir       string
	isolation isolation
	address   string // of the scheduler's port
}

// newHost lets kubeadm write the kubeconfig and the manifest of the scheduler of a cluster.
func newHost(t *testing.T, cluster *testcluster.Cluster) *host {
	t.Helper()
	h := &host{T: t, dir: t.TempDir(), isolation: permitted(), address: quietAddress(t)}
	t.Logf("isolation of containers: %s; the scheduler's address: %s", h.isolation, h.address)
	pki := h.path("etc/kubernetes/pki")
	if err := os.MkdirAll(pki, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "ca.key"} {
		content, err := os.ReadFile(filepath.Join(cluster.DataDir, "pki", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(pki, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubeadm := filepath.Join(t.TempDir(), "kubeadm")
	if err := goBuild(filepath.Join(repository, "conformance"), kubeadm, "k8s.io/kubernetes/cmd/kubeadm", nil); err != nil {
		t.Fatal(err)
	}
	h.kubeadm(kubeadm, "kubeconfig", "--apiserver-advertise-address", advertised)
	var extra []string
	if h.address != "127.0.0.1" { // kubeadm's default
		extra = []string{"--scheduler-extra-args", "bind-address=" + h.address}
	}
	h.kubeadm(kubeadm, "control-plane", extra...)
	h.mode(schedulerConf)
	h.mode(manifest)
	h.pointTo(cluster.Server)
	return h
}

// path returns where a file of the host is.
func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

// kubeadm runs a phase of `kubeadm init` for the scheduler. The host's directory is its root if that is permitted;
// otherwise it writes to the same places by way of flags and of its dry run.
func (h *host) kubeadm(program, phase string, args ...string) {
	h.Helper()
	args = append([]string{"init", "phase", phase, "scheduler", "--kubernetes-version", kubernetesVersion}, args...)
	c := exec.CommandContext(h.Context(), program, args...)
	if h.isolation == plain {
		c.Args = append(c.Args, "--cert-dir", h.path("etc/kubernetes/pki"))
		if phase == "kubeconfig" {
			c.Args = append(c.Args, "--kubeconfig-dir", h.path("etc/kubernetes"))
		} else {
			c.Args = append(c.Args, "--dry-run")
			c.Env = append(os.Environ(), "KUBEADM_INIT_DRYRUN_DIR="+filepath.Dir(h.path(manifest)))
			if err := os.MkdirAll(filepath.Dir(h.path(manifest)), 0o700); err != nil {
				h.Fatal(err)
			}
		}
	} else {
		c.Args = append(c.Args, "--rootfs", h.dir)
		c.SysProcAttr = h.isolation.attributes()
	}
	if out, err := c.CombinedOutput(); err != nil {
		h.Fatalf("kubeadm %s: %v\n%s", strings.Join(c.Args[1:], " "), err, out)
	}
}

// mode checks that a file can be read by its owner alone. That is why the image must not set a user.
func (h *host) mode(name string) {
	h.Helper()
	info, err := os.Stat(h.path(name))
	if err != nil {
		h.Fatal(err)
	}
	if mode := info.Mode(); mode != fs.FileMode(0o600) {
		h.Errorf("kubeadm wrote /%s with mode %s; this test is about 0600", name, mode)
	}
}

// pointTo replaces the address of the API server in scheduler.conf and leaves the file as it is otherwise.
func (h *host) pointTo(server string) {
	h.Helper()
	text := h.read(schedulerConf)
	old := "https://" + advertised + ":6443"
	if strings.Count(text, old) != 1 {
		h.Fatalf("scheduler.conf does not name %s once:\n%s", old, text)
	}
	if err := os.WriteFile(h.path(schedulerConf), []byte(strings.Replace(text, old, server, 1)), 0); err != nil {
		h.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.Helper()
	text, err := os.ReadFile(h.path(name))
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// pod reads the manifest.
func (h *host) pod() *v1.Pod {
	h.Helper()
	var p v1.Pod
	if err := yaml.UnmarshalStrict([]byte(h.read(manifest)), &p); err != nil {
		h.Fatalf("%s: %v", manifest, err)
	}
	if len(p.Spec.Containers) != 1 || !p.Spec.HostNetwork {
		h.Fatalf("%s: %d containers, host network %v", manifest, len(p.Spec.Containers), p.Spec.HostNetwork)
	}
	return &p
}

// container returns what a kubelet starts for the manifest when the image is i. A field of the manifest that would
// change the process and is not known here fails the test.
func (h *host) container(i image) container {
	h.Helper()
	p := h.pod()
	of := p.Spec.Containers[0]
	if s := p.Spec.SecurityContext; s == nil || s.SeccompProfile == nil || s.RunAsUser != nil || s.RunAsNonRoot != nil {
		h.Errorf("the manifest's security context is %+v", s)
	}
	if of.SecurityContext != nil || len(of.Args) != 0 || len(of.Env) != 0 || of.WorkingDir != "" {
		h.Errorf("the manifest's container is %+v", of)
	}
	c := i.run(h.T, of.Command...)
	c.Mounts = map[string]string{}
	for _, m := range of.VolumeMounts {
		for _, v := range p.Spec.Volumes {
			if v.Name == m.Name && v.HostPath != nil && m.ReadOnly {
				c.Mounts[m.MountPath] = h.path(v.HostPath.Path)
			}
		}
		if c.Mounts[m.MountPath] == "" {
			h.Errorf("no volume for the mount %+v", m)
		}
	}
	return c
}

// shell runs commands of a document on the host: /etc/kubernetes is the host's.
func (h *host) shell(commands string) {
	h.Helper()
	c := exec.CommandContext(h.Context(), "sh", "-ec", strings.ReplaceAll(commands, "/etc/kubernetes", h.path("etc/kubernetes")))
	if out, err := c.CombinedOutput(); err != nil {
		h.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// quietAddress returns a loopback address at which the scheduler's port is free: kubeadm's if possible.
func quietAddress(t *testing.T) string {
	t.Helper()
	for n := 1; n < 255; n++ {
		address := fmt.Sprintf("127.0.0.%d", n)
		if l, err := net.Listen("tcp", net.JoinHostPort(address, schedulerPort)); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatalf("port %s is taken on every address", schedulerPort)
	return ""
}
