// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/spread"
)

// rounds of as many cases as rapid runs by default.
const rounds = 30

// handle is what upstream's plugin asks of its framework.
type handle struct {
	fwk.Handle
	snapshot *internalcache.Snapshot
	objects  informers.SharedInformerFactory
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return parallelize.NewParallelizer(1) }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.objects }

// duel is one cluster and one pod before both plugins.
type duel struct {
	ctx     context.Context
	seen    map[string]int // what was compared -> how often
	intake  *convert.Intake
	state   cluster.Snapshot
	nodes   []fwk.NodeInfo
	theirs  *podtopologyspread.PodTopologySpread
	ours    *spread.PodTopologySpread
	pending *v1.Pod
	pod     *cluster.Pod // the same
}

// TestLikeUpstream holds statuses, errors, suppositions, scores and hints of generated pods against upstream's.
func TestLikeUpstream(t *testing.T) {
	metrics.Register() // upstream's parallelizer counts its goroutines
	seen := map[string]int{}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			d := newDuel(t, seen)
			d.filters(t)
			d.scores(t)
			for k := range 3 {
				d.podHint(t, k)
				d.targetHint(t)
				d.nodeHint(t)
			}
		})
	}
	t.Log(seen)
	for _, what := range []string{"PreFilter Error", "PreFilter Skip", "PreFilter Success", "Filter Success", "Filter Unschedulable", "Filter UnschedulableAndUnresolvable",
		"PreScore Error", "PreScore Skip", "PreScore Success", "pod hint 0", "pod hint 1", "node hint 0", "node hint 1"} {
		if seen[what] < rounds {
			t.Errorf("%s: %d times in %d cases", what, seen[what], rounds*100)
		}
	}
}

func newDuel(t *rapid.T, seen map[string]int) *duel {
	d := &duel{ctx: context.Background(), seen: seen, intake: convert.NewIntake()}
	store, objects := cluster.NewStore(), informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	core, apps := objects.Core().V1(), objects.Apps().V1()
	drawObjects(t, func(o cluster.Object) {
		store.SetObject(o)
		var known cache.SharedIndexInformer
		switch o.(type) {
		case *v1.Service:
			known = core.Services().Informer()
		case *v1.ReplicationController:
			known = core.ReplicationControllers().Informer()
		case *appsv1.ReplicaSet:
			known = apps.ReplicaSets().Informer()
		case *appsv1.StatefulSet:
			known = apps.StatefulSets().Informer()
		}
		if err := known.GetStore().Add(o); err != nil {
			t.Fatal(err)
		}
	})
	var nodes []*v1.Node
	for i := range rapid.IntRange(1, 9).Draw(t, "nodes") {
		nodes = append(nodes, drawNode(t, i))
		store.SetNode(d.intake.Node(nodes[i]))
	}
	var pods []*v1.Pod
	for i := range rapid.IntRange(0, 20).Draw(t, "pods") {
		p := drawPod(t, fmt.Sprint("bound", i))
		p.Spec.NodeName = nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "on")].Name
		pods = append(pods, p)
		store.SetPod(d.intake.Pod(p))
	}
	d.state = store.Snapshot()
	snapshot := internalcache.NewSnapshot(pods, nodes)
	all, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for row := range cluster.NodeIdx(d.state.Rows()) { // in our order
		i := slices.IndexFunc(all, func(ni fwk.NodeInfo) bool { return ni.Node().Name == d.state.NodeName(row) })
		d.nodes = append(d.nodes, all[i])
	}
	d.plugins(t, &handle{snapshot: snapshot, objects: objects})
	d.pending = drawPending(t)
	d.pod = d.intake.PendingPod(d.pending)
	return d
}

// plugins makes both plugins with the same arguments and the gates of 1.37.
func (d *duel) plugins(t *rapid.T, h *handle) {
	theirs, ours := &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}, spread.DefaultPodTopologySpreadArgs()
	if chance(t, 40, "list defaulting") {
		theirs.DefaultingType, ours.System = config.ListDefaulting, false
		theirs.DefaultConstraints = drawDefaults(t)
		ours.DefaultConstraints = theirs.DefaultConstraints
	}
	made, err := podtopologyspread.New(d.ctx, theirs, h, feature.Features{EnableNodeInclusionPolicyInPodTopologySpread: true,
		EnableMatchLabelKeysInPodTopologySpread: true})
	if err != nil {
		t.Fatal(err)
	}
	d.theirs = made.(*podtopologyspread.PodTopologySpread)
	if d.ours, err = spread.NewPodTopologySpread(ours); err != nil {
		t.Fatal(err)
	}
}

func (d *duel) saw(format string, args ...any) { d.seen[fmt.Sprintf(format, args...)]++ }

func (d *duel) filters(t *rapid.T) {
	cycle := framework.NewCycleState()
	_, status := d.theirs.PreFilter(d.ctx, cycle, d.pending, d.nodes)
	plan := d.ours.PrepareFilter(d.state, d.pod)
	d.saw("PreFilter %s", status.Code())
	switch status.Code() {
	case fwk.Error:
		if plan.Err == nil || plan.Err.Error() != status.AsError().Error() {
			t.Fatalf("upstream %v, kumiki %v", status.AsError(), plan.Err)
		}
	case fwk.Skip:
		if plan.Err != nil || plan.Filter != nil {
			t.Fatalf("upstream skips, kumiki %+v", plan)
		}
	default:
		if plan.Err != nil || plan.Filter == nil {
			t.Fatalf("upstream filters, kumiki %+v", plan)
		}
		d.statuses(t, cycle, plan.Filter, "as it is")
		d.suppose(t, cycle, plan.Filter.(plugin.Supposing))
	}
}

// statuses compares what both say of each node, and our two forms.
func (d *duel) statuses(t *rapid.T, cycle fwk.CycleState, f plugin.PodFilter, when string) {
	column := make([]plugin.Verdict, len(d.nodes))
	f.Column(d.state, 0, cluster.NodeIdx(len(d.nodes)), plugin.TagOf(0), column)
	for n, ni := range d.nodes {
		status, code := d.theirs.Filter(d.ctx, cycle, d.pending, ni), f.Plain(d.state, d.state.View(cluster.NodeIdx(n)))
		d.saw("Filter %s", status.Code())
		want, reasons, unresolvable := []string(nil), []string(nil), status.Code() == fwk.UnschedulableAndUnresolvable
		if !status.IsSuccess() {
			want = status.Reasons()
		}
		if code != plugin.Fit {
			reasons = f.Reasons(code)
		}
		if !slices.Equal(want, reasons) || unresolvable != (code&plugin.Unresolvable != 0) || column[n].Code() != code {
			t.Fatalf("%s, on %s: upstream %v, kumiki %q (%x, column form %x)", when, ni.Node().Name, status, reasons, code, column[n])
		}
	}
}

// suppose takes pods off a node and puts others there, as preemption does.
func (d *duel) suppose(t *rapid.T, cycle fwk.CycleState, f plugin.Supposing) {
	n := rapid.IntRange(0, len(d.nodes)-1).Draw(t, "supposed on")
	ni, view := d.nodes[n], d.state.View(cluster.NodeIdx(n))
	add := func(p *v1.Pod) {
		info, err := framework.NewPodInfo(p)
		if status := d.theirs.AddPod(d.ctx, cycle, d.pending, info, ni); err != nil || !status.IsSuccess() {
			t.Fatal(err, status)
		}
		f.AddPod(d.state, d.intake.Pod(p), view)
		d.statuses(t, cycle, f, "with "+p.Name)
	}
	var gone []*v1.Pod
	for _, info := range ni.GetPods() {
		if p := info.GetPod(); chance(t, 50, "a victim") {
			if status := d.theirs.RemovePod(d.ctx, cycle, d.pending, info, ni); !status.IsSuccess() {
				t.Fatal(status)
			}
			f.RemovePod(d.state, d.intake.Pod(p), view)
			d.statuses(t, cycle, f, "without "+p.Name)
			gone = append(gone, p)
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "newcomers") {
		add(drawPod(t, fmt.Sprint("new", i)))
	}
	for _, p := range gone {
		if chance(t, 50, "reprieved") {
			add(p)
		}
	}
}

func (d *duel) scores(t *rapid.T) {
	var fit []cluster.NodeIdx
	var infos []fwk.NodeInfo
	for n, ni := range d.nodes {
		if chance(t, 75, "fits") {
			fit, infos = append(fit, cluster.NodeIdx(n)), append(infos, ni)
		}
	}
	if len(fit) < 2 {
		return // nothing is scored
	}
	cycle := framework.NewCycleState()
	status := d.theirs.PreScore(d.ctx, cycle, d.pending, infos)
	score, err := d.ours.PrepareUncached(d.state, d.pod, fit)
	d.saw("PreScore %s", status.Code())
	if skips := d.ours.Skips(d.state, d.pod); skips != (status.Code() == fwk.Skip) || (score != nil) != status.IsSuccess() {
		t.Fatalf("upstream %v, kumiki %v, skips %v", status, score, skips)
	}
	if status.Code() == fwk.Error && (err == nil || err.Error() != status.AsError().Error()) {
		t.Fatalf("upstream %v, kumiki %v", status.AsError(), err)
	}
	if score == nil {
		return
	}
	got := make([]int64, len(fit))
	score.Rows(d.state, fit, got)
	list := make(fwk.NodeScoreList, len(fit))
	for i, ni := range infos {
		raw, _ := d.theirs.Score(d.ctx, cycle, d.pending, ni)
		if plain := score.Plain(d.state, d.state.View(fit[i])); raw != got[i] || raw != plain {
			t.Fatalf("%s: upstream scores %d, kumiki %d, the plain form %d", ni.Node().Name, raw, got[i], plain)
		}
		list[i] = fwk.NodeScore{Name: ni.Node().Name, Score: raw}
	}
	if status := d.theirs.NormalizeScore(d.ctx, cycle, d.pending, list); !status.IsSuccess() {
		t.Fatal(status)
	}
	score.Normalize(d.state, fit, got)
	for i := range list {
		if list[i].Score != got[i] {
			t.Fatalf("%s: upstream normalises to %d, kumiki to %d", list[i].Name, list[i].Score, got[i])
		}
	}
}

// podHint compares what both make of a pod that comes, goes or changes.
func (d *duel) podHint(t *rapid.T, k int) {
	kind := rapid.IntRange(0, 2).Draw(t, "comes, goes or changes")
	ch := plugin.Change{State: d.state}
	var before, after any
	if kind != 0 {
		p := d.drawChanged(t, k)
		before, ch.OldPod = p, d.intake.Pod(p)
	}
	if kind != 1 {
		p := d.drawChanged(t, k)
		after, ch.NewPod = p, d.intake.Pod(p)
	}
	d.hint(t, 0, "pod", before, after, ch)
}

// targetHint asks about an update of the waiting pod itself.
func (d *duel) targetHint(t *rapid.T) {
	p := d.pending.DeepCopy()
	if chance(t, 50, "other labels") {
		p.Labels = drawPod(t, "relabelled").Labels
	}
	if chance(t, 50, "tolerates more") {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "more"})
	}
	ch := plugin.Change{State: d.state, OldPod: d.pod, NewPod: d.intake.PendingPod(p)}
	d.hint(t, 1, "pod itself", d.pending, p, ch)
}

func (d *duel) drawChanged(t *rapid.T, k int) *v1.Pod {
	p := drawPod(t, fmt.Sprint("changed", k))
	if chance(t, 20, "the pod itself") {
		labels := p.Labels
		p = d.pending.DeepCopy()
		if chance(t, 50, "other labels") {
			p.Labels = labels
		}
		if chance(t, 50, "tolerates more") {
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "more"})
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "where") {
	case 0:
		p.Status.NominatedNodeName = "n0"
	case 1, 2:
		p.Spec.NodeName = "n0"
	}
	return p
}

func (d *duel) nodeHint(t *rapid.T) {
	kind := rapid.IntRange(0, 2).Draw(t, "comes, goes or changes")
	ch := plugin.Change{State: d.state}
	var before, after any
	if kind != 0 {
		n := drawNode(t, 0)
		before, ch.OldNode = n, d.intake.Node(n)
	}
	if kind != 1 {
		n := drawNode(t, 0)
		after, ch.NewNode = n, d.intake.Node(n)
	}
	d.hint(t, 2, "node", before, after, ch)
}

func (d *duel) hint(t *rapid.T, registration int, what string, before, after any, ch plugin.Change) {
	events, err := d.theirs.EventsToRegister(d.ctx)
	if err != nil {
		t.Fatal(err)
	}
	event, wake := events[registration], d.ours.Wakes()[registration]
	if len(events) != len(d.ours.Wakes()) || string(event.Event.Resource) != string(wake.Event.Resource) || uint64(event.Event.ActionType) != uint64(wake.Event.Action) {
		t.Fatalf("upstream registers %+v, kumiki %+v", event.Event, wake.Event)
	}
	hint, err := event.QueueingHintFn(klog.Background(), d.pending, before, after)
	d.saw("%s hint %d", what, hint)
	if got := wake.Hint(d.pod, ch); (got == plugin.QueueHint) != (hint == fwk.Queue || err != nil) {
		t.Fatalf("a %s, %+v, became %+v: upstream %v %v, kumiki %v", what, before, after, hint, err, got)
	}
}
