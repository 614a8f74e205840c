// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A cluster comes up, answers with the version of upstream, survives the death
// of its API server, and is gone when it is closed.
func TestStartFaultsAndClose(t *testing.T) {
	var dataDir string
	t.Run("cluster", func(t *testing.T) {
		c := Start(t, Options{Nodes: 3})
		dataDir = c.DataDir
		if c.Nodes != 3 {
			t.Errorf("asked for 3 nodes, the ready line says %d", c.Nodes)
		}
		client := newClient(t, c.Kubeconfig)
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != "v1.37.1" || version.Major != "1" || version.Minor != "37" {
			t.Errorf("version is %+v: the linker flags of %s/%s did not arrive", version, moduleDir, ldflagsFile)
		}
		if err := c.Kill(APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Discovery().ServerVersion(); err == nil {
			t.Error("the API server still answers after it was killed")
		}
		if phase := phaseOf(t, c, APIServer); phase != "killed" {
			t.Errorf("status says that the killed API server is %s", phase)
		}
		if err := c.Restart(APIServer); err != nil {
			t.Fatal(err)
		}
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != 3 {
			t.Errorf("%d nodes after the restart, want the 3 from before", len(nodes.Items))
		}
		if err := c.Stop(Nodes); err != nil {
			t.Fatal(err)
		}
		if phase := phaseOf(t, c, Nodes); phase != "stopped" {
			t.Errorf("status says that the frozen nodes are %s", phase)
		}
		if err := c.Cont(Nodes); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill("scheduler"); err == nil {
			t.Error("killing a role that does not exist was accepted")
		}
	})
	if _, err := os.Stat(dataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary data directory %s is left behind (%v)", dataDir, err)
	}
}

// A spec with an error is refused with the program's own words.
func TestLaunchTellsWhatIsWrong(t *testing.T) {
	var progress bytes.Buffer
	_, err := Launch(t.Context(), Options{NodeSpec: "shapes: [{name: a, cuont: 1}]", Progress: &progress})
	if err == nil {
		t.Fatal("a misspelt field was accepted")
	}
	if !bytes.Contains([]byte(err.Error()), []byte("cuont")) {
		t.Errorf("the error does not name the field: %v", err)
	}
}

// When the context ends, so does the cluster.
func TestLaunchEndsWithContext(t *testing.T) {
	unlock, err := lockOne(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Launch(ctx, Options{Nodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	children, err := c.Status()
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes != 0 || len(children) != 4 {
		t.Errorf("got %d nodes and children %v, want no node and 4 children", c.Nodes, children)
	}
	cancel()
	<-c.Ended()
	for _, child := range children {
		if err := syscall.Kill(child.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (pid %d) is still there: %v", child.Role, child.PID, err)
		}
	}
}

// Each lock lets one holder in at a time and is free when its holder lets go.
func TestLocksAreExclusive(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	take := func(paths ...string) func() {
		t.Helper()
		unlock, err := lock(t.Context(), nil, paths...)
		if err != nil {
			t.Fatal(err)
		}
		return unlock
	}
	unlock := take(first, second)
	other := take(first, second)
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockInterval)
	defer cancel()
	waited := false
	if _, err := lock(ctx, func() { waited = true }, first, second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third holder of two locks got %v, want to wait until its time is up", err)
	}
	if !waited {
		t.Error("no one was notified of the wait")
	}
	unlock()
	take(first)()
	other()
	take(second)()
}

// Tests with another limit have a lock in common, so that a test alone waits for those of `make test`.
func TestPlacesOfClusters(t *testing.T) {
	one, err := places("")
	three, err3 := places("3")
	if err != nil || err3 != nil || len(one) != 1 || len(three) != 3 || three[0] != one[0] ||
		len(slices.Compact(slices.Sorted(slices.Values(three)))) != 3 {
		t.Errorf("one cluster takes %v, three take %v; %v, %v", one, three, err, err3)
	}
	for _, text := range []string{"0", "-1", "many"} {
		if _, err := places(text); err == nil || !strings.Contains(err.Error(), ClustersEnv) {
			t.Errorf("%q clusters: %v", text, err)
		}
	}
}

func TestOptionsBecomeFlags(t *testing.T) {
	got := Options{
		Nodes: 7, PodStages: "realistic", FeatureGates: "A=true", RuntimeConfig: "b/v1=true",
		NoKubeletAdmission: true, NoHeartbeats: true, Args: []string{"--fsync=false"},
	}.args("")
	want := []string{
		"start", "--nodes=7", "--data-dir=", "--pod-stages=realistic", "--feature-gates=A=true", "--runtime-config=b/v1=true",
		"--kubelet-admission=false", "--heartbeats=false", "--fsync=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := (Options{Nodes: 7}).args("/spec.yaml"); slices.Contains(got, "--nodes=7") {
		t.Errorf("a spec and a number of nodes were both given: %v", got)
	}
}

func phaseOf(t *testing.T, c *Cluster, role Role) string {
	t.Helper()
	children, err := c.Status()
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		if child.Role == role {
			return child.Phase
		}
	}
	t.Fatalf("no %s in %v", role, children)
	return ""
}

func newClient(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
