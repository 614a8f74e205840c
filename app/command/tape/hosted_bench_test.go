// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// usual is a plugin as many are: it rejects a few nodes for one of two reasons, and scores the others at random.
type usual struct {
	rng   *rand.Rand
	skips bool
}

func (*usual) Name() string { return "Usual" }

func (u *usual) PreFilter(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	if u.skips {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (*usual) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (u *usual) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	if n := u.rng.IntN(40); n < 2 {
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("node(s) lack what the plugin needs %d", n))
	}
	return nil
}

func (u *usual) PreScore(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	if u.skips {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

func (u *usual) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return u.rng.Int64N(101), nil
}

func (*usual) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (*usual) Less(a, b fwk.QueuedEntityInfo) bool { return a.GetPriority() > b.GetPriority() }

func (*usual) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }

func (*usual) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (*usual) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return nil, 0
}

// BenchmarkHostedBytes reports what the answers of a plugin add to a recording, for each pod: in bytes of the answers
// and of the lines that have them, beside all lines.
func BenchmarkHostedBytes(b *testing.B) {
	for name, points := range map[string][]string{ // order: each by itself
		"skips":  {"preFilter", "filter", "preScore", "score"},
		"filter": {"preFilter", "filter"},
		"score":  {"preScore", "score"},
		"permit": {"queueSort", "preFilter", "reserve", "permit"},
		"all":    {"queueSort", "preFilter", "filter", "preScore", "score", "reserve", "permit"},
	} {
		for _, nodes := range []int{100, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
				for range b.N {
					measureBytes(b, points, name == "skips", nodes)
				}
			})
		}
	}
}

func measureBytes(b *testing.B, points []string, skips bool, nodes int) {
	b.Helper()
	const pods = 200
	u := &usual{rng: rand.New(rand.NewPCG(1, 1)), skips: skips}
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "Usual", Type: u,
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return u, nil }})
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for _, at := range points {
		off := ""
		if at == "queueSort" {
			off = "disabled: [{name: PrioritySort}], "
		}
		fmt.Fprintf(&text, "%s: {%senabled: [{name: Usual}]}, ", at, off)
	}
	c, err := plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {" + text.String() + "}}]\n"))
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		b.Fatal(err)
	}
	e, intake := engine.New(cfg), convert.NewIntake()
	intake.KeepFull()
	var answers, lines, all int
	step := func(ev engine.Event) (binds []engine.Bind) {
		effects := e.Step(ev)
		if _, is := ev.(engine.NodeSet); is {
			return nil
		}
		all += len(recording.AppendEvent(nil, ev)) + len(recording.AppendEffects(nil, effects))
		for _, f := range effects {
			switch f := f.(type) {
			case engine.Heard:
				answers += len(f.Hosted)
				lines += len(recording.AppendEffects(nil, []engine.Effect{f}))
			case engine.Bind:
				binds = append(binds, f)
			}
		}
		return binds
	}
	for i := range nodes {
		step(engine.NodeSet{Node: intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("64"),
				"memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}}})})
	}
	step(engine.Synced{})
	for i := range pods {
		step(engine.PodSet{Pod: intake.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}, Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("100m")}}}}}})})
	}
	bound := 0
	for e.Ready() {
		for _, f := range step(engine.Cycle{}) {
			bound++
			step(engine.BindDone{Pod: f.Pod, Node: f.Node})
		}
	}
	if bound < pods/2 {
		b.Fatalf("%d of %d pods bound", bound, pods)
	}
	b.ReportMetric(float64(answers)/pods, "answers-B/pod")
	b.ReportMetric(float64(lines)/pods, "lines-B/pod")
	b.ReportMetric(float64(all)/pods, "all-B/pod")
	b.ReportMetric(0, "ns/op")
}
