// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/examples/sessions"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// sessionArena is a cluster of four nodes with a scheduler that works in sessions.
type sessionArena struct {
	declared

	mu sync.Mutex
	// tried counts the decisions about a gang, evicted the pods that were to be evicted.
	tried   map[string]int // namespace/name -> decisions
	evicted map[string]int // namespace/name of the pod -> how often
}

// TestSessionsOnARealAPIServer plays the four scenarios of examples/sessions with the files that are shown there,
// at shorter sessions: basic allocation; preemption of a lower gang; no preemption when the newcomer cannot fit in
// full; no preemption of equal priority. That nothing happens is looked at after three attempts.
func TestSessionsOnARealAPIServer(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 4, NoHeartbeats: true})
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	a := &sessionArena{declared: declared{T: t, client: kubernetes.NewForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg)}}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.client.Discovery()))
	defer a.run(cluster)()
	a.apply(a.file("priorities.yaml"))

	a.part("1-allocate/part-1.yaml")
	a.expect("a is bound", "a-0", "a-1")
	a.part("1-allocate/part-2.yaml")
	a.expect("solo goes past b", "a-0", "a-1", "solo")
	a.stands("b", "a-0", "a-1", "solo")
	a.leave("a-0", "a-1")
	a.expect("b has its places", "solo", "b-0", "b-1", "b-2")
	a.over()

	a.part("2-preempt/part-1.yaml")
	a.expect("low is bound", "low-0", "low-1", "low-2")
	a.part("2-preempt/part-2.yaml")
	a.expect("high has its places, and low is gone whole", "high-0", "high-1", "high-2")
	if got := a.evictions(); got != "low-0:1 low-1:1 low-2:1" {
		t.Errorf("evicted were %s", got)
	}
	a.over()

	a.part("3-too-large/part-1.yaml")
	a.expect("low and stays are bound", "low-0", "low-1", "stays")
	a.part("3-too-large/part-2.yaml")
	a.stands("high", "low-0", "low-1", "stays")
	a.over()

	a.part("4-equal/part-1.yaml")
	a.expect("first is bound", "first-0", "first-1", "first-2")
	a.part("4-equal/part-2.yaml")
	a.stands("second", "first-0", "first-1", "first-2")
	a.leave("first-0")
	a.expect("second has its places", "first-1", "first-2", "second-0", "second-1")
	if got := a.evictions(); got != "" {
		t.Errorf("evicted were %s", got)
	}
}

func (a *sessionArena) file(name string) []byte {
	a.Helper()
	text, err := sessions.Files.ReadFile(name)
	if err != nil {
		a.Fatal(err)
	}
	return text
}

// run starts the scheduler with the configuration that is shown, but for the period; what it returns ends it.
func (a *sessionArena) run(cluster *testcluster.Cluster) (end func()) {
	a.Helper()
	text := a.file("config.yaml")
	shorter := bytes.Replace(text, []byte("sessionPeriod: 5s"), []byte("sessionPeriod: 1500ms"), 1)
	if bytes.Equal(text, shorter) {
		a.Fatal("config.yaml does not say the period")
	}
	o := app.DefaultOptions()
	var err error
	if o.Config, err = config.Parse(shorter); err != nil {
		a.Fatal(err)
	}
	if o.Rest, err = kube.RestConfig(kube.ClientOptions{Kubeconfig: cluster.SchedulerKubeconfig}); err != nil {
		a.Fatal(err)
	}
	o.Serve.Secure = nil
	o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
	o.Observers = append(o.Observers, func(_ engine.Event, effects []engine.Effect) { a.see(effects) })
	a.over()
	_, end = runInside(a.Context(), a.T, o)
	return end
}

func (a *sessionArena) see(effects []engine.Effect) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Evict:
			for _, v := range f.Victims {
				a.evicted[v.Name]++
			}
		case engine.Decided:
			if d := f.Decision; d.Gang != nil && d.Verdict == record.DoesNotFit {
				a.tried[d.Gang.Name]++
			}
		}
	}
}

func (a *sessionArena) part(name string) {
	a.Helper()
	a.apply(a.file(name))
}

// pods lists those that are bound and those that wait.
func (a *sessionArena) pods() (bound, waiting []v1.Pod) {
	a.Helper()
	list, err := a.client.CoreV1().Pods("default").List(a.Context(), metav1.ListOptions{})
	if err != nil {
		a.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			bound = append(bound, p)
		} else {
			waiting = append(waiting, p)
		}
	}
	return bound, waiting
}

// expect waits until just these pods are bound, each on a node of its own.
func (a *sessionArena) expect(what string, names ...string) {
	a.Helper()
	a.eventually(what, func() error {
		bound, waiting := a.pods()
		on := map[string]string{} // node -> pod
		var got []string
		for _, p := range bound {
			if other := on[p.Spec.NodeName]; other != "" {
				return fmt.Errorf("pods %s and %s are both on %s", other, p.Name, p.Spec.NodeName)
			}
			on[p.Spec.NodeName] = p.Name
			got = append(got, p.Name)
		}
		if !sameNames(got, names) {
			return fmt.Errorf("bound are %v, want %v; %d wait, %s", got, names, len(waiting), firstWait(waiting))
		}
		return nil
	})
}

func firstWait(waiting []v1.Pod) string {
	if len(waiting) == 0 {
		return "nobody"
	}
	return waiting[0].Name + ": " + waits(&waiting[0])
}

func sameNames(got, want []string) bool {
	set := map[string]bool{}
	for _, name := range got {
		set[name] = true
	}
	for _, name := range want {
		if !set[name] {
			return false
		}
	}
	return len(got) == len(want)
}

// stands: a gang is tried three times, gets nothing, and just these pods are still bound and stay.
func (a *sessionArena) stands(gang string, names ...string) {
	a.Helper()
	a.eventually("three attempts of gang "+gang, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := a.tried["default/"+gang]; n < 3 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	bound, _ := a.pods()
	var got []string
	for _, p := range bound {
		if p.DeletionTimestamp == nil {
			got = append(got, p.Name)
		}
	}
	if !sameNames(got, names) || a.evictions() != "" {
		a.Errorf("after three attempts of gang %s %v are bound, and %q were evicted; want %v and none", gang, got, a.evictions(), names)
	}
}

func (a *sessionArena) evictions() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(a.evicted)) {
		list = append(list, fmt.Sprintf("%s:%d", name, a.evicted[name]))
	}
	return strings.Join(list, " ")
}

// leave deletes pods.
func (a *sessionArena) leave(names ...string) {
	a.Helper()
	for _, name := range names {
		if err := a.client.CoreV1().Pods("default").Delete(a.Context(), name, metav1.DeleteOptions{}); err != nil {
			a.Fatal(err)
		}
	}
}

// over ends a scenario: no pods, nothing seen.
func (a *sessionArena) over() {
	a.Helper()
	if err := a.client.CoreV1().Pods("default").DeleteCollection(a.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		a.Fatal(err)
	}
	a.eventually("no pods", func() error {
		bound, waiting := a.pods()
		if n := len(bound) + len(waiting); n > 0 {
			return fmt.Errorf("%d pods are left", n)
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried, a.evicted = map[string]int{}, map[string]int{}
}
