// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestTheStaticPodOfKubeadm runs the program under the name kube-scheduler with the command line that kubeadm
// writes into /etc/kubernetes/manifests/kube-scheduler.yaml, asks what the probes of that manifest ask, and stops
// it as a kubelet does. Changing the image in the manifest is the whole migration.
func TestTheStaticPodOfKubeadm(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "kube-scheduler")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "github.com/kumiki-scheduler/kumiki/cmd/kumiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kumiki: %v\n%s", err, out)
	}
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 2})
	kubeconfig := filepath.Join(dir, "scheduler.conf")
	text, err := os.ReadFile(cluster.SchedulerKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := quietAddress(t)
	var log bytes.Buffer
	cmd := exec.Command(binary,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+address,
		"--kubeconfig="+kubeconfig,
		"--leader-elect=true",
	)
	cmd.Args[0] = "kube-scheduler"
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	running := true
	stop := func(how syscall.Signal) error {
		running = false
		cmd.Process.Signal(how)
		return <-gone
	}
	t.Cleanup(func() {
		if running {
			stop(syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("the scheduler said:\n%s", log.String())
		}
	})

	client := adminClient(t, cluster)
	create(t, client, pod("static", "100m"))
	allBound(t, client, 1)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		eventually(t, path+" answers", func() (bool, string) {
			code, err := probe(t.Context(), "https://"+net.JoinHostPort(address, "10259")+path)
			return code == http.StatusOK, fmt.Sprint(code, err)
		})
	}
	// All paths but health are for identities that the API server authorizes.
	if code, err := probe(t.Context(), "https://"+net.JoinHostPort(address, "10259")+"/metrics"); code != http.StatusForbidden {
		t.Errorf("/metrics answers an unauthorized client with %d, %v", code, err)
	}
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	host, _ := os.Hostname()
	if err != nil || lease.Spec.HolderIdentity == nil || !strings.HasPrefix(*lease.Spec.HolderIdentity, host+"_") {
		t.Errorf("the lease kube-system/kube-scheduler: %v, %+v", err, lease)
	}
	if err := stop(syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM, it ended with %v", err)
	}
}

// quietAddress is an address of this machine at which the port of kube-scheduler is free: kubeadm's, if it can be.
func quietAddress(t *testing.T) string {
	t.Helper()
	for n := 1; n < 255; n++ {
		address := fmt.Sprintf("127.0.0.%d", n)
		if l, err := net.Listen("tcp", net.JoinHostPort(address, "10259")); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("port 10259 is taken on every address")
	return ""
}

// probe asks once, as a kubelet does: without a look at the certificate, which was made at start.
func probe(ctx context.Context, url string) (int, error) {
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
