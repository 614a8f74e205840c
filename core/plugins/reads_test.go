// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// TestDefaultPluginsDeclareWhatTheyRead: each filter and each scorer declares something.
func TestDefaultPluginsDeclareWhatTheyRead(t *testing.T) {
	for _, r := range Registry() {
		pl := plugintest.Must(r.New(nil))
		_, filters := pl.(plugin.Filter)
		_, scores := pl.(plugin.Scorer)
		if declared := plugin.ReadsOf(pl) != 0; declared != (filters || scores) {
			t.Errorf("%s declares %b", r.Name, plugin.ReadsOf(pl))
		}
	}
}

// judged is what a prepared plugin says of each row.
type judged struct {
	verdicts []plugin.Verdict
	scores   []int64
	versions [2]uint64 // of filter and score
}

func judge(s cluster.Snapshot, pp plugintest.Prepared) judged {
	rows := s.Rows()
	out := judged{make([]plugin.Verdict, rows), make([]int64, rows), [2]uint64{}}
	for n := range rows {
		if s.Node(cluster.NodeIdx(n)) == nil {
			out.verdicts[n] = plugin.NoNode
		}
	}
	if pp.Filter != nil {
		out.versions[0] = plugin.VersionOf(pp.Filter, s)
		pp.Filter.Column(s, 0, cluster.NodeIdx(rows), plugin.TagOf(1), out.verdicts)
	}
	if pp.Score != nil {
		out.versions[1] = plugin.VersionOf(pp.Score, s)
		pp.Score.Column(s, 0, cluster.NodeIdx(rows), out.scores)
	}
	return out
}

// difference is a change of a cluster or a pod that changes nothing but what it names.
type difference struct {
	name    string
	changes plugin.Reads
	// apply changes the cluster at a node that has a pod with the name bound; nil for a difference of the pod.
	apply func(t *rapid.T, w *plugintest.Cluster, n *v1.Node, bound *v1.Pod)
	// other returns another pod.
	other func(t *rapid.T, p *v1.Pod) *v1.Pod
}

func differences() []difference {
	return []difference{
		{"node object", plugin.ReadsNode, func(t *rapid.T, w *plugintest.Cluster, n *v1.Node, _ *v1.Pod) {
			other := plugintest.RandomNode(t, n.Name)
			other.Status.Allocatable = n.Status.Allocatable
			w.With(other)
		}, nil},
		{"amounts of the node", plugin.ReadsAmounts, func(t *rapid.T, w *plugintest.Cluster, n *v1.Node, _ *v1.Pod) {
			other := n.DeepCopy()
			other.Status.Allocatable = plugintest.RandomNode(t, "other").Status.Allocatable
			w.With(other)
		}, nil},
		{"requests on the node", plugin.ReadsAmounts, func(t *rapid.T, w *plugintest.Cluster, _ *v1.Node, bound *v1.Pod) {
			more := bound.DeepCopy()
			more.Spec.Containers = nil
			plugintest.Requests("cpu", "2", "memory", "1Gi")(more)
			w.With(more)
		}, nil},
		{"pods of the node", plugin.ReadsPods, func(t *rapid.T, w *plugintest.Cluster, _ *v1.Node, bound *v1.Pod) {
			other := bound.DeepCopy()
			other.Labels = map[string]string{"zone": "a"}
			other.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: rapid.Int32Range(80, 81).Draw(t, "port")}}
			w.With(other)
		}, nil},
		{"another node", plugin.ReadsRows, func(t *rapid.T, w *plugintest.Cluster, _ *v1.Node, _ *v1.Pod) {
			w.With(plugintest.RandomNode(t, "another"))
		}, nil},
		{"a pod of another node", plugin.ReadsRows, func(t *rapid.T, w *plugintest.Cluster, _ *v1.Node, _ *v1.Pod) {
			p := plugintest.RandomPod(t, "elsewhere", 0)
			p.Spec.NodeName = "second"
			w.With(p)
		}, nil},
		{"a device class", plugin.ReadsObjects, func(t *rapid.T, w *plugintest.Cluster, _ *v1.Node, _ *v1.Pod) {
			backs := plugintest.Pick(t, plugintest.ExtendedResources, "resource")
			w.With(&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "class", ResourceVersion: "1"},
				Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &backs}})
		}, nil},
		{"requests of the pod", plugin.ReadsAmounts, nil, func(t *rapid.T, p *v1.Pod) *v1.Pod {
			other := p.DeepCopy()
			for i := range other.Spec.Containers {
				other.Spec.Containers[i].Resources.Requests = plugintest.ResourceList("cpu", "1", "memory", "7Gi")
			}
			return other
		}},
		{"the rest of the pod", plugin.ReadsWholePod, nil, func(_ *rapid.T, p *v1.Pod) *v1.Pod {
			other, priority := p.DeepCopy(), int32(7)
			other.Name, other.UID, other.Labels = "other", "uid-other", map[string]string{"zone": "b"}
			other.Spec.Priority, other.Spec.SchedulerName = &priority, "other"
			other.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
			return other
		}},
	}
}

// checkReads changes one thing and demands that what plugins say stays the same, unless they declare that they read
// it, and that it stays the same on other rows in any case. A changed version excuses both.
func checkReads(t *rapid.T, d difference, plugins []plugin.Plugin) {
	w := plugintest.NewCluster()
	n := plugintest.RandomNode(t, "first")
	bound := plugintest.Pod("bound", plugintest.Requests("cpu", "1"), plugintest.OnNode("first"))
	w.With(n, plugintest.RandomNode(t, "second"), bound)
	s, pending := w.Store.Snapshot(), plugintest.RandomPod(t, "pending", 0)
	all := plugintest.Prepare(s, w.Intake.PendingPod(pending), plugins)
	now := all
	var before []judged
	for _, pp := range all {
		before = append(before, judge(s, pp))
	}
	if d.apply != nil {
		d.apply(t, w, n, bound)
	} else {
		now = plugintest.Prepare(s, w.Intake.PendingPod(d.other(t, pending)), plugins)
	}
	for i, pp := range now {
		reads, after := plugin.ReadsOf(plugins[i]), judge(s, pp)
		for row, was := range before[i].verdicts {
			first, ofOthers := s.NodeName(cluster.NodeIdx(row)) == "first", d.changes == plugin.ReadsRows
			declared := reads&d.changes != 0 && (first || ofOthers || d.apply == nil)
			if declared || ofOthers && !first {
				continue // the change is declared, or it is a change of this row
			}
			if is := after.verdicts[row]; is != was && after.versions[0] == before[i].versions[0] {
				t.Fatalf("%s: verdict %x on %s is %x after a change of: %s", pp.Name, was, s.NodeName(cluster.NodeIdx(row)),
					is, d.name)
			}
			if is := after.scores[row]; is != before[i].scores[row] && after.versions[1] == before[i].versions[1] {
				t.Fatalf("%s: score %d on %s is %d after a change of: %s", pp.Name, before[i].scores[row],
					s.NodeName(cluster.NodeIdx(row)), is, d.name)
			}
		}
	}
}

// TestDeclarationsAreComplete: what a plugin does not declare makes no difference to what it says.
func TestDeclarationsAreComplete(t *testing.T) {
	for _, d := range differences() {
		t.Run(d.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				cached := slices.DeleteFunc(randomPlugins(t, 0), func(pl plugin.Plugin) bool {
					return !plugin.ReadsOf(pl).Cached()
				})
				checkReads(t, d, cached)
			})
		})
	}
}

// TestAWrongDeclarationIsFound: a plugin that declares too little fails for what it reads.
func TestAWrongDeclarationIsFound(t *testing.T) {
	for _, tt := range []struct {
		difference string
		wrong      func(t *rapid.T) plugin.Plugin
	}{
		{"node object", func(*rapid.T) plugin.Plugin { return tooLittle{basic.NodeUnschedulable{}, plugin.ReadsAmounts} }},
		{"pods of the node", func(*rapid.T) plugin.Plugin { return tooLittle{basic.NodePorts{}, plugin.ReadsNode} }},
		{"requests of the pod", func(*rapid.T) plugin.Plugin { return tooLittle{fitPlugin(), plugin.ReadsNode} }},
		{"requests on the node", func(*rapid.T) plugin.Plugin { return tooLittle{fitPlugin(), plugin.ReadsNode} }},
		{"amounts of the node", func(*rapid.T) plugin.Plugin { return tooLittle{fitPlugin(), plugin.ReadsNode} }},
		{"the rest of the pod", func(*rapid.T) plugin.Plugin { return tooLittle{labelled{}, plugin.ReadsNode} }},
		{"another node", func(*rapid.T) plugin.Plugin { return tooLittle{counting{}, plugin.ReadsNode} }},
	} {
		d := differences()[slices.IndexFunc(differences(), func(d difference) bool { return d.name == tt.difference })]
		fails := probe.Fails(func(p *probe.T) {
			rapid.Check(p, func(t *rapid.T) { checkReads(t, d, []plugin.Plugin{tt.wrong(t)}) })
		})
		if !fails {
			t.Errorf("%s: a plugin that reads it and does not declare it passes", tt.difference)
		}
	}
}

// tooLittle is a filter with a wrong declaration.
type tooLittle struct {
	plugin.Filter
	reads plugin.Reads
}

func (w tooLittle) Reads() plugin.Reads { return w.reads }

func fitPlugin() plugin.Filter {
	r, _ := Lookup("NodeResourcesFit")
	return plugintest.Must(r.New(nil)).(plugin.Filter)
}

// labelled is a filter that reads a label of the pod.
type labelled struct{ basic.NodeName }

func (labelled) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: rejectIf(func(cluster.Snapshot) bool { return p.Spec.Labels["zone"] == "b" })}
}

// counting is a filter that counts nodes.
type counting struct{ basic.NodeName }

func (counting) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: rejectIf(func(s cluster.Snapshot) bool { return s.Nodes() > 2 })}
}

// rejects is a prepared filter for all nodes.
type rejects func(cluster.Snapshot) bool

func rejectIf(when func(cluster.Snapshot) bool) plugin.PodFilter {
	return plugin.FilterByNode(rejects(when))
}

func (r rejects) Plain(s cluster.Snapshot, _ *cluster.NodeView) plugin.Code {
	if r(s) {
		return 1
	}
	return plugin.Fit
}

func (rejects) Reasons(plugin.Code) []string { return []string{"rejected"} }
