// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// drawn is a plugin at all extension points. Its answers come from a generator of random numbers, so they follow from
// nothing that a recording has but from the answers themselves.
type drawn struct {
	name                            string
	rng                             *rand.Rand
	handle                          fwk.Handle
	extensions, normalizes, anyWake bool
}

// drawnPlugin registers a plugin.
func drawnPlugin(name string, rng *rand.Rand) framework.Registration {
	d := &drawn{name: name, rng: rng, extensions: rng.IntN(2) == 0, normalizes: rng.IntN(2) == 0,
		anyWake: rng.IntN(3) == 0}
	return framework.Registration{Name: name, Type: d,
		Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			d.handle = h
			return d, nil
		}}
}

func (d *drawn) Name() string { return d.name }

// percent is true in so many of a hundred calls.
func (d *drawn) percent(n int) bool { return d.rng.IntN(100) < n }

// status draws a status: rejections, errors and Pending in so many of a hundred calls each.
func (d *drawn) status(rejects, fails, pending int) *fwk.Status {
	switch n := d.rng.IntN(100); {
	case n < rejects:
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%s is busy %d", d.name, n%3))
	case n < rejects+rejects/2:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, d.name+" never accepts it", "really")
	case n < rejects+rejects/2+fails:
		return fwk.AsStatus(fmt.Errorf("%s fails %d", d.name, n%2))
	case n < rejects+rejects/2+fails+pending:
		return fwk.NewStatus(fwk.Pending, d.name+" waits")
	}
	return nil
}

func (d *drawn) PreEnqueue(context.Context, *v1.Pod) *fwk.Status { return d.status(7, 0, 0) }

// Less contradicts itself now and then.
func (d *drawn) Less(a, b fwk.QueuedEntityInfo) bool {
	if d.percent(20) {
		return d.percent(50)
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

func (d *drawn) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if d.anyWake {
		return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.WildCard, ActionType: fwk.All}}}, nil
	}
	hint := func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
		if d.percent(2) {
			panic("hint")
		}
		if d.percent(40) {
			return fwk.Queue, nil
		}
		return fwk.QueueSkip, nil
	}
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.All}, QueueingHintFn: hint},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.All}, QueueingHintFn: hint},
	}, nil
}

func (d *drawn) PreFilter(_ context.Context, _ fwk.CycleState, _ *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if d.percent(30) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if status := d.status(4, 2, 1); status != nil || !d.percent(12) {
		return nil, status
	}
	result := &fwk.PreFilterResult{NodeNames: sets.New("no-such-node")}
	for _, n := range nodes {
		if d.percent(70) {
			result.NodeNames.Insert(n.Node().Name)
		}
	}
	return result, nil
}

func (d *drawn) PreFilterExtensions() fwk.PreFilterExtensions {
	if !d.extensions {
		return nil
	}
	return d
}

func (d *drawn) AddPod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	return d.status(0, 2, 0)
}

func (d *drawn) RemovePod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	return d.status(0, 2, 0)
}

func (d *drawn) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	if d.rng.IntN(1000) == 0 {
		panic("Filter")
	}
	return d.status(15, 0, 2)
}

// PostFilter runs filters of the profile, and changes nominations.
func (d *drawn) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nodes, _ := d.handle.SnapshotSharedLister().NodeInfos().List()
	var result *fwk.PostFilterResult
	if len(nodes) > 0 {
		n := nodes[d.rng.IntN(len(nodes))]
		statuses.Get(n.Node().Name)
		d.handle.RunFilterPluginsWithNominatedPods(ctx, state.Clone(), pod, n)
		for _, other := range d.handle.NominatedPodsForNode(n.Node().Name) {
			if d.percent(30) {
				d.handle.DeleteNominatedPodIfExists(other.GetPod())
			}
		}
		if d.percent(40) {
			result = &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride,
				NominatedNodeName: n.Node().Name}}
		}
	}
	if d.percent(20) {
		return result, nil
	}
	if status := d.status(30, 3, 3); status != nil {
		return result, status
	}
	return result, fwk.NewStatus(fwk.Unschedulable)
}

func (d *drawn) PreScore(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	if d.percent(30) {
		return fwk.NewStatus(fwk.Skip)
	}
	return d.status(0, 2, 0)
}

func (d *drawn) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	switch n := d.rng.IntN(1000); {
	case n < 2:
		return 0, fwk.AsStatus(errors.New("Score fails"))
	case n < 4 && !d.normalizes:
		return 101, nil
	case d.normalizes:
		return d.rng.Int64N(1<<20) - 1<<19, nil
	case n < 500:
		return 50, nil
	}
	return d.rng.Int64N(101), nil
}

func (d *drawn) ScoreExtensions() fwk.ScoreExtensions {
	if !d.normalizes {
		return nil
	}
	return d
}

func (d *drawn) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, list fwk.NodeScoreList) *fwk.Status {
	for i := range list {
		list[i].Score = (list[i].Score + 1<<19) * 100 >> 20
	}
	return d.status(0, 1, 0)
}

// GeneratePlacements proposes overlapping sets of nodes, all nodes among them, and now and then a node that is not one.
func (d *drawn) GeneratePlacements(_ context.Context, _ fwk.PodGroupCycleState, _ fwk.PodGroupInfo,
	parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	if status := d.status(5, 4, 0); status != nil {
		return nil, status
	}
	out := &fwk.GeneratePlacementsResult{}
	for i := range d.rng.IntN(5) {
		p := &fwk.Placement{Name: fmt.Sprint("placement-", i)}
		for _, n := range parent.Nodes {
			switch {
			case d.rng.IntN(100) == 0:
				p.Nodes = append(p.Nodes, n.Snapshot())
			case i == 0 || d.percent(60):
				p.Nodes = append(p.Nodes, n)
			}
		}
		out.Placements = append(out.Placements, p)
	}
	return out, nil
}

func (d *drawn) ScorePlacement(context.Context, fwk.PlacementCycleState, fwk.PodGroupInfo,
	*fwk.PodGroupAssignments) (int64, *fwk.Status) {
	return d.rng.Int64N(4) * 30, d.status(0, 3, 0)
}

func (d *drawn) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }

func (d *drawn) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return d.status(4, 3, 0)
}

func (d *drawn) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (d *drawn) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	if d.percent(30) {
		return fwk.NewStatus(fwk.Wait), time.Duration(1+d.rng.IntN(30)) * time.Second
	}
	return d.status(4, 3, 0), 0
}

func (d *drawn) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult,
	*fwk.Status) {
	if d.percent(50) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (d *drawn) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return d.status(0, 8, 0)
}

func (d *drawn) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	if d.percent(60) {
		return fwk.NewStatus(fwk.Skip)
	}
	return d.status(0, 8, 0)
}

func (d *drawn) PostBind(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	if d.percent(30) {
		d.handle.Activate(klog.Background(), map[string]*v1.Pod{"": pod})
	}
}

// act does what a plugin may do on a goroutine of its own: answer for pods that wait, and have others tried.
func (d *drawn) act() {
	if d.handle == nil {
		return // no profile enables it
	}
	d.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		for _, name := range w.GetPendingPlugins() {
			switch n := d.rng.IntN(10); {
			case n < 4:
				w.Allow(name)
			case n == 4:
				w.Reject(name, name+" changed its mind")
			case n == 5:
				w.Preempt(name, "another pod is more important")
			}
		}
	})
}
