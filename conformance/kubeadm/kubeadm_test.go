// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// patience ends a wait that hangs.
const patience = 60 * time.Second

// within waits until a condition holds, and reports whether it did.
func within(t *testing.T, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return true
}

// TestTheImageIsReplacedOnKubeadm: kube-scheduler's image runs in the static pod of kubeadm, then kumiki's, then
// kube-scheduler's again. The commands of docs/migration.md change nothing in the manifest but the image. It catches an
// image that sets a user (kubeadm's scheduler.conf has mode 0600 and belongs to root), one without the command
// kube-scheduler in its PATH, and a program that does not accept kubeadm's flags or does not answer its probes.
func TestTheImageIsReplacedOnKubeadm(t *testing.T) {
	ours, upstream := kumikiImage(t), upstreamImage(t)
	c := newCluster(t)
	h := newHost(t, c.Cluster)
	written := h.read(manifest)
	replace, back := documented(t)

	p := start(t, h.container(upstream), h.isolation)
	h.probes()
	c.schedules("before")
	first := c.lease()
	p.end()

	h.shell(replace)
	if now, want := h.read(manifest), imageIs(written, "registry.example/kumiki:v1"); now != want {
		t.Errorf("the document's commands made this of the manifest:\n%s\nwant:\n%s", now, want)
	}
	h.mode(manifest)
	p = start(t, h.container(ours), h.isolation)
	h.probes()
	c.schedules("with-kumiki")
	second := c.lease()
	c.explains(h, ours, "with-kumiki")
	if code := p.end(); code != 0 {
		t.Errorf("kumiki's exit code after SIGTERM is %d", code)
	}

	h.shell(back)
	if now := h.read(manifest); now != written {
		t.Errorf("the way back made this of the manifest:\n%s\nwant:\n%s", now, written)
	}
	h.mode(manifest)
	start(t, h.container(upstream), h.isolation)
	h.probes()
	c.schedules("after")
	third := c.lease()
	if second.UID != first.UID || third.UID != first.UID {
		t.Errorf("three leases, want one: %v, %v, %v", first.UID, second.UID, third.UID)
	}
	holders := []string{*first.Spec.HolderIdentity, *second.Spec.HolderIdentity, *third.Spec.HolderIdentity}
	if holders[0] == holders[1] || holders[1] == holders[2] || holders[0] == holders[2] {
		t.Errorf("holders of the lease: %q", holders)
	}
}

// imageIs returns a manifest with another image.
func imageIs(manifest, image string) string {
	lines := strings.Split(manifest, "\n")
	for n, line := range lines {
		if before, _, is := strings.Cut(line, "image: "); is {
			lines[n] = before + "image: " + image
		}
	}
	return strings.Join(lines, "\n")
}

// documented returns the commands of docs/migration.md that replace the image on a node of kubeadm, and those that put
// the old one back.
func documented(t *testing.T) (replace, back string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs/migration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for n, part := range strings.Split(string(text), "```") {
		if n%2 == 1 && strings.Contains(part, "/etc/kubernetes") {
			_, commands, _ := strings.Cut(part, "\n")
			blocks = append(blocks, commands)
		}
	}
	if len(blocks) != 2 {
		t.Fatalf("docs/migration.md has %d blocks with commands on /etc/kubernetes, want two: %q", len(blocks), blocks)
	}
	return blocks[0], blocks[1]
}

// probes waits until the manifest's probes succeed, in the order in which a kubelet uses them.
func (h *host) probes() {
	h.Helper()
	of := h.pod().Spec.Containers[0]
	for n, probe := range []*v1.Probe{of.StartupProbe, of.LivenessProbe, of.ReadinessProbe} {
		name := []string{"startup", "liveness", "readiness"}[n]
		if probe == nil || probe.HTTPGet == nil {
			h.Fatalf("the %s probe is %+v", name, probe)
		}
		port := probe.HTTPGet.Port.String()
		for _, p := range of.Ports {
			if p.Name == port {
				port = fmt.Sprint(p.ContainerPort)
			}
		}
		url := strings.ToLower(string(probe.HTTPGet.Scheme)) + "://" + net.JoinHostPort(probe.HTTPGet.Host, port) + probe.HTTPGet.Path
		var last string
		if !within(h.T, func() bool {
			code, err := get(h.Context(), url)
			last = fmt.Sprint(url, ": ", code, " ", err)
			return err == nil && code >= 200 && code < 400 // as a kubelet judges it
		}) {
			h.Fatalf("the %s probe does not succeed: %s", name, last)
		}
	}
}

// get sends one request as a kubelet does: it does not verify the certificate.
func get(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	client := http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	response.Body.Close()
	return response.StatusCode, nil
}

// cluster is a local cluster without a scheduler.
type cluster struct {
	*testing.T
	*testcluster.Cluster
	client *kubernetes.Clientset
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, Cluster: testcluster.Start(t, testcluster.Options{Nodes: 2, NoHeartbeats: true})}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.client = kubernetes.NewForConfigOrDie(cfg)
	if !within(t, func() bool {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}) {
		t.Fatal("no service account in namespace default")
	}
	return c
}

// schedules creates a pod and waits until it has a node.
func (c *cluster) schedules(name string) {
	c.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "registry.example/c:1"}}}}
	pods := c.client.CoreV1().Pods("default")
	if _, err := pods.Create(c.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	var last string
	if !within(c.T, func() bool {
		p, err := pods.Get(c.Context(), name, metav1.GetOptions{})
		last = fmt.Sprint(p.Status.Conditions, err)
		return err == nil && p.Spec.NodeName != ""
	}) {
		c.Fatalf("pod %s gets no node: %s", name, last)
	}
}

// lease returns the scheduler's lease, which a process must hold.
func (c *cluster) lease() *coordinationv1.Lease {
	c.Helper()
	l, err := c.client.CoordinationV1().Leases("kube-system").Get(c.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		c.Fatalf("the lease kube-system/kube-scheduler: %v, %+v", err, l)
	}
	return l
}

// explains runs kumiki why on the node, where the address of kubeadm's --bind-address can be reached.
func (c *cluster) explains(h *host, i image, pod string) {
	h.Helper()
	why := exec.CommandContext(h.Context(), filepath.Join(i.rootfs, "kumiki"), "why", "pod/"+pod, "-n", "default",
		"--kubeconfig", c.Kubeconfig, "--scheduler-endpoint", net.JoinHostPort(h.address, schedulerPort))
	out, err := why.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "pod default/"+pod+": Placed on ") {
		h.Errorf("kumiki why: %v\n%s", err, out)
	}
}
