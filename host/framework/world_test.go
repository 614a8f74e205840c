// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// scripted is a plugin whose answers a test sets. A nil function answers Success.
type scripted struct {
	name      string
	log       *[]string // of calls; may be nil
	preFilter func(fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status)
	add       func(state fwk.CycleState, pod fwk.PodInfo, sign int) *fwk.Status
	filter    func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status
	preScore  func(fwk.CycleState, []fwk.NodeInfo) *fwk.Status
	score     func(fwk.CycleState, fwk.NodeInfo) (int64, *fwk.Status)
	normalize func(fwk.NodeScoreList) *fwk.Status
	reserve   func(node string) *fwk.Status
	gate      func(*v1.Pod) *fwk.Status
	events    func() ([]fwk.ClusterEventWithHint, error)
}

func (p *scripted) Name() string { return p.name }

func (p *scripted) note(format string, args ...any) {
	if p.log != nil {
		*p.log = append(*p.log, p.name+" "+fmt.Sprintf(format, args...))
	}
}

func (p *scripted) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.note("PreFilter %s", pod.Name)
	if p.preFilter == nil {
		return nil, nil
	}
	return p.preFilter(state, pod, nodes)
}

func (p *scripted) PreFilterExtensions() fwk.PreFilterExtensions {
	if p.add == nil {
		return nil
	}
	return p
}

func (p *scripted) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, pod fwk.PodInfo,
	_ fwk.NodeInfo) *fwk.Status {
	return p.add(state, pod, 1)
}

func (p *scripted) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, pod fwk.PodInfo,
	_ fwk.NodeInfo) *fwk.Status {
	return p.add(state, pod, -1)
}

func (p *scripted) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	p.note("Filter %s", node.Node().Name)
	if p.filter == nil {
		return nil
	}
	return p.filter(state, pod, node)
}

func (p *scripted) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	p.note("PreScore %d", len(nodes))
	if p.preScore == nil {
		return nil
	}
	return p.preScore(state, nodes)
}

func (p *scripted) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64,
	*fwk.Status) {
	p.note("Score %s", node.Node().Name)
	if p.score == nil {
		return 0, nil
	}
	return p.score(state, node)
}

func (p *scripted) ScoreExtensions() fwk.ScoreExtensions {
	if p.normalize == nil {
		return nil
	}
	return p
}

func (p *scripted) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, list fwk.NodeScoreList) *fwk.Status {
	p.note("NormalizeScore %d", len(list))
	return p.normalize(list)
}

func (p *scripted) Reserve(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) *fwk.Status {
	p.note("Reserve %s", node)
	if p.reserve == nil {
		return nil
	}
	return p.reserve(node)
}

func (p *scripted) Unreserve(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) {
	p.note("Unreserve %s", node)
}

func (p *scripted) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if p.gate == nil {
		return nil
	}
	return p.gate(pod)
}

func (p *scripted) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if p.events == nil {
		return nil, nil
	}
	return p.events()
}

// world is a cluster and a profile with hosted plugins.
type world struct {
	*plugintest.Cluster
	profile  *Profile
	placer   *place.Placer
	problems []Problem
}

// newWorld enables plugins at the points, after native filters and scorers.
func newWorld(t testing.TB, native []plugin.Plugin, points []config.Point, hostedPlugins ...fwk.Plugin) *world {
	t.Helper()
	w := &world{Cluster: plugintest.NewCluster()}
	w.Intake.KeepFull()
	_, measures := t.(*testing.B)
	w.profile = NewHost(Env{Limits: config.Hosted{Check: !measures},
		Report: func(p Problem) { w.problems = append(w.problems, p) }}).Profile("p")
	var profile place.Profile
	add := func(pl plugin.Plugin, filters, scores bool) {
		if f, is := pl.(plugin.Filter); is && filters {
			profile.Filters = append(profile.Filters, f)
		}
		if sc, is := pl.(plugin.Scorer); is && scores {
			profile.Scorers = append(profile.Scorers, place.Scorer{Scorer: sc, Weight: 2})
		}
	}
	for _, pl := range native {
		add(pl, true, true)
	}
	for _, pl := range hostedPlugins {
		made, err := w.profile.Add(Registration{Name: pl.Name(),
			Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }}, nil)
		if err != nil {
			t.Fatal(err)
		}
		filters, scores := false, false
		for _, at := range points {
			if err := w.profile.Enable(pl.Name(), at); err != nil {
				t.Fatal(err)
			}
			filters = filters || at == config.PreFilter || at == config.Filter
			scores = scores || at == config.Score
		}
		add(made, filters, scores)
	}
	w.placer = place.New(profile, noMeter{}, place.DefaultClassBytes)
	return w
}

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}
func (noMeter) Did(record.Work, int)        {}

// nodes adds nodes of these names.
func (w *world) nodes(names ...string) *world {
	for _, name := range names {
		w.With(plugintest.Node(name, plugintest.Allocatable("cpu", "8", "memory", "16Gi")))
	}
	return w
}

type nominations map[string][]*cluster.Pod // node -> pods

func (n nominations) NominatedNodes() []string {
	var out []string
	for name := range n {
		out = append(out, name)
	}
	return out
}

func (n nominations) NominatedOn(node string) []*cluster.Pod { return n[node] }

// place places a pod; of tied nodes it takes the first.
func (w *world) place(p *v1.Pod) (place.Outcome, place.Rejection) {
	return w.placeWith(p, nominations{})
}

func (w *world) placeWith(p *v1.Pod, noms nominations) (place.Outcome, place.Rejection) {
	s := w.Store.Snapshot()
	out := w.placer.Place(s, w.Intake.PendingPod(p), noms, func(int) int { return 0 })
	return out, w.placer.Why(s, out)
}
