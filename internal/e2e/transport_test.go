// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// line is what runs between a scheduler in this process and its API server.
type line struct {
	client *kubernetes.Clientset // of an admin, past the rules
	rules  *fault.Rules
}

// TestFaultsOnTheLine plays the cases F1, F2, F8, F9, F11 and F34 of `make reliability` to a scheduler inside this
// process. Nodes are filled to the last core, so that capacity that is lost or allocated twice shows. Of changes to
// the engine it catches: a bind whose answer is lost counts as failed (F2) or takes no capacity (F1); watches are not
// audited (F8, F9); pods that other schedulers bind take no capacity (F11); the objects of a second list are ignored
// (F34).
func TestFaultsOnTheLine(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: `
shapes:
- {name: answers, count: 2, capacity: {cpu: "4", memory: 8Gi}, labels: {part: answers}}
- {name: late, count: 1, capacity: {cpu: "1", memory: 8Gi}, labels: {part: late}}
- {name: lost, count: 1, capacity: {cpu: "1", memory: 8Gi}, labels: {part: lost}}
- {name: frozen, count: 2, capacity: {cpu: "4", memory: 8Gi}, labels: {part: frozen}}
- {name: garbled, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: garbled}}
`, NoHeartbeats: true})
	l := &line{client: adminClient(t, cluster), rules: &fault.Rules{}}
	history := checker.Follow(t.Context(), l.client)
	// An audit would mend what the other parts are to find.
	end := l.schedule(t, cluster.SchedulerKubeconfig, 0)
	t.Run("F1", l.answersLost)
	t.Run("F2", l.bindLate)
	t.Run("F11", l.frozen)
	t.Run("F34", l.garbled)
	end()
	end = l.schedule(t, cluster.SchedulerKubeconfig, time.Second)
	t.Run("F8 and F9", l.eventsLost)
	end()
	judge(t, l.client, history)
}

// schedule runs a scheduler behind the rules until end is called.
func (l *line) schedule(t *testing.T, kubeconfig string, audit time.Duration) (end func()) {
	t.Helper()
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fault.NewTransport(l.rules, next) })
	o := app.DefaultOptions()
	o.Rest, o.Serve.Secure, o.AuditPeriod = cfg, nil, audit
	o.Config.LeaderElection.Enabled = false
	o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
	_, stop := runInside(t.Context(), t, o)
	return func() {
		l.rules.Clear()
		stop()
	}
}

// pods creates NAME-0 to NAME-(n-1), which select the nodes of a part.
func (l *line) pods(t *testing.T, part, name, cpu string, n int, change ...func(*v1.Pod)) {
	t.Helper()
	for i := range n {
		p := pod(fmt.Sprintf("%s-%d", name, i), cpu)
		p.Spec.NodeSelector = map[string]string{"part": part}
		for _, c := range change {
			c(p)
		}
		create(t, l.client, p)
	}
}

// placed waits until n pods of this name are bound.
func (l *line) placed(t *testing.T, name string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods %s are placed", n, name), func() (bool, string) {
		bound := 0
		for _, p := range listPods(t, l.client) {
			if strings.HasPrefix(p.Name, name+"-") && p.Spec.NodeName != "" {
				bound++
			}
		}
		return bound == n, fmt.Sprintf("%d are", bound)
	})
}

// full places pods on all capacity that must be left on the nodes of a part, and then one pod more.
func (l *line) full(t *testing.T, part, cpu string, left int) {
	t.Helper()
	l.pods(t, part, part+"-fill", cpu, left)
	l.placed(t, part+"-fill", left)
	l.pods(t, part, part+"-over", cpu, 1)
	l.refused(t, part+"-over-0")
}

func (l *line) refused(t *testing.T, name string) {
	t.Helper()
	eventually(t, "pod "+name+" waits for cpu", func() (bool, string) {
		p, err := l.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if p.Spec.NodeName != "" {
			t.Fatalf("pod %s is on node %s, and there was no capacity", name, p.Spec.NodeName)
		}
		return strings.Contains(waits(p), "Insufficient cpu"), waits(p)
	})
}

func binding(f fault.Fate) fault.Request {
	return fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Fate: f}
}

// answersLost: a third of the binds are carried out and seem to fail, in three ways.
func (l *line) answersLost(t *testing.T) {
	for i, f := range []fault.Fate{fault.ErrorAfter(http.StatusInternalServerError), fault.CutAfter(), fault.SilentAfter()} {
		rule := binding(f)
		rule.Every, rule.Times = 3, 5
		struck := l.rules.On(rule)
		name := fmt.Sprintf("answers-%d", i)
		l.pods(t, "answers", name, "400m", 5)
		l.placed(t, name, 5)
		if struck.Hits() == 0 {
			t.Errorf("%v never struck", struck)
		}
		struck.Remove()
	}
	l.full(t, "answers", "400m", 5)
}

// bindLate: two pods need the capacity of one, and the bind of the first is carried out after the second was tried.
func (l *line) bindLate(t *testing.T) {
	const late = time.Second
	rule := binding(fault.AppliedLater(late))
	rule.Name, rule.Times = "first-0", 1
	struck := l.rules.On(rule)
	l.pods(t, "late", "first", "1", 1)
	if err := struck.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.pods(t, "late", "second", "1", 1)
	l.placed(t, "first", 1)
	time.Sleep(2 * late) // so that the late bind has come, whatever became of it
	l.refused(t, "second-0")
}

// eventsLost: a node grew and a pod was created, and both events were lost.
func (l *line) eventsLost(t *testing.T) {
	l.pods(t, "lost", "big", "2", 1)
	l.refused(t, "big-0")
	node := l.rules.OnEvent(fault.Event{Resource: "nodes", Type: "MODIFIED", Name: "lost-0000", Times: 1, Twist: fault.Drop()})
	grow := `{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}`
	if _, err := l.client.CoreV1().Nodes().Patch(t.Context(), "lost-0000", types.MergePatchType, []byte(grow), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if err := node.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.placed(t, "big", 1)
	lost := l.rules.OnEvent(fault.Event{Resource: "pods", Type: "ADDED", Name: "unseen-0", Times: 1, Twist: fault.Drop()})
	l.pods(t, "lost", "unseen", "1", 1)
	if err := lost.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.placed(t, "unseen", 1)
	l.full(t, "lost", "1", 1)
}

// frozen: meanwhile another scheduler takes most of a node.
func (l *line) frozen(t *testing.T) {
	ice := l.rules.Freeze("*")
	if err := ice.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.pods(t, "frozen", "foreign", "1", 3, func(p *v1.Pod) { p.Spec.SchedulerName = "somebody-else" })
	for i := range 3 {
		err := l.client.CoreV1().Pods("default").Bind(t.Context(), &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i)}, Target: v1.ObjectReference{Kind: "Node", Name: "frozen-0000"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	l.pods(t, "frozen", "meanwhile", "1", 2)
	ice.Remove()
	l.placed(t, "meanwhile", 2)
	l.full(t, "frozen", "1", 3)
}

// garbled: events that cannot be decoded, and then watches whose version is too old.
func (l *line) garbled(t *testing.T) {
	rule := l.rules.OnEvent(fault.Event{Resource: "pods", Every: 2, Times: 2, Twist: fault.Garble()})
	l.pods(t, "garbled", "garbled", "1", 2)
	l.placed(t, "garbled", 2)
	if rule.Hits() == 0 {
		t.Error("no event was garbled")
	}
	// The watches end with an event in them that only a list can bring back.
	ice := l.rules.Freeze("*")
	if err := ice.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.pods(t, "garbled", "untold", "1", 1)
	l.rules.EndWatches("*", fault.Expired)
	ice.Remove()
	l.placed(t, "untold", 1)
	l.full(t, "garbled", "1", 1)
}
