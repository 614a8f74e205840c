// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// shown lists what a NodeInfo shows.
func shown(n fwk.NodeInfo) string {
	var pods []string
	for _, p := range n.GetPods() {
		pods = append(pods, p.GetPod().Name+" on "+p.GetPod().Spec.NodeName)
	}
	return fmt.Sprint(n.Node().Name, n.Node().Labels, pods, n.GetUsedPorts(), n.GetRequested().GetMilliCPU(),
		n.GetNonZeroRequested().GetMilliCPU(), n.GetAllocatable().GetMilliCPU(), len(n.GetPodsWithAffinity()),
		slices.Sorted(maps.Keys(n.GetImageStates())), n.GetPVCRefCounts())
}

// TestNodeInfosFollowTheStore compares the NodeInfos that follow random changes with those of a host that sees the store
// for the first time. A row that did not change keeps its NodeInfo, and a pod that stays keeps its PodInfo.
func TestNodeInfosFollowTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := plugintest.NewCluster()
		w.Intake.KeepFull()
		var m nodeInfos
		changed := map[string]bool{} // node -> changed since the last comparison
		pods := 0
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			node := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))
			_, exists := w.Store.Snapshot().Find(node)
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				w.With(plugintest.Node(node, plugintest.Labels("v", fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "v")))))
				changed[node] = true
			case 1, 2:
				pods++
				w.With(plugintest.Pod(fmt.Sprint("p", pods), plugintest.Requests("cpu", "100m"), plugintest.OnNode(node)))
				changed[node] = true
			case 3:
				if exists {
					w.Store.DeleteNode(node)
					changed[node] = true
				}
			case 4:
				if uid := cluster.UID(fmt.Sprint("uid-p", rapid.IntRange(0, pods).Draw(t, "gone"))); exists {
					if _, n, _, ok := w.Store.Snapshot().PodOn(uid); ok {
						changed[w.Store.Snapshot().NodeName(n)] = true
						w.Store.DeletePod(uid)
					}
				}
			default:
				compare(t, w, &m, changed)
				clear(changed)
			}
		}
		compare(t, w, &m, changed)
	})
}

func compare(t *rapid.T, w *plugintest.Cluster, m *nodeInfos, changed map[string]bool) {
	compareList(t, w, m)
	before := slices.Clone(m.all)
	sameNodes := m.begun && m.nodeSet == w.Store.Snapshot().NodeSet()
	m.follow(w.Store.Snapshot())
	var anew nodeInfos
	anew.follow(w.Store.Snapshot())
	if len(m.all) != len(anew.all) || len(m.all) != w.Store.Snapshot().Nodes() {
		t.Fatalf("%d NodeInfos, %d anew, %d nodes", len(m.all), len(anew.all), w.Store.Snapshot().Nodes())
	}
	for i := range m.all {
		// A NodeInfo that no plugin reads stays unread, so that the next one has to go on from the one before it.
		if rapid.Bool().Draw(t, "read") {
			if got, want := shown(m.all[i]), shown(anew.all[i]); got != want {
				t.Fatalf("follows: %s\nanew:    %s", got, want)
			}
		}
		if name := m.all[i].Node().Name; sameNodes && !changed[name] && m.all[i] != before[i] {
			t.Fatalf("node %s did not change, and has another NodeInfo", name)
		}
	}
}

// compareList compares the list of a few rows with the NodeInfos of these rows.
func compareList(t *rapid.T, w *plugintest.Cluster, m *nodeInfos) {
	m.follow(w.Store.Snapshot())
	var rows []cluster.NodeIdx
	odd := rapid.IntRange(0, 3).Draw(t, "odd") == 0
	for n := range m.rows {
		if m.rows[n] != nil && (!odd || n%2 > 0) {
			rows = append(rows, cluster.NodeIdx(n))
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "window") == 0 && len(rows) > 1 {
		rows[0], rows[1] = rows[1], rows[0]
	}
	list := m.list(&plugin.FitRows{Rows: rows})
	for i, n := range rows {
		if list[i] != m.rows[n] {
			t.Fatalf("the list has an old NodeInfo of row %d", n)
		}
	}
}

// TestTheListOfNodesThatFitIsKept: a decision for the same rows makes no list, also after changes.
func TestTheListOfNodesThatFitIsKept(t *testing.T) {
	w := plugintest.NewCluster()
	w.Intake.KeepFull()
	w.With(plugintest.Node("a"), plugintest.Node("b"), plugintest.Node("c"))
	var m nodeInfos
	m.follow(w.Store.Snapshot())
	first := m.list(&plugin.FitRows{Rows: []cluster.NodeIdx{0, 2}})
	w.With(plugintest.Pod("p", plugintest.OnNode("c")))
	m.follow(w.Store.Snapshot())
	if again := m.list(&plugin.FitRows{Rows: []cluster.NodeIdx{0, 2}}); &again[0] != &first[0] || again[1] != fwk.NodeInfo(m.rows[2]) {
		t.Errorf("another list, or an old NodeInfo: %s", shown(again[1]))
	}
	if other := m.list(&plugin.FitRows{Rows: []cluster.NodeIdx{0, 1}}); &other[0] == &first[0] {
		t.Error("the list of other rows is the same one")
	}
}

// TestNodeInfoCopies: a copy can be changed, and the NodeInfo that was lent stays.
func TestNodeInfoCopies(t *testing.T) {
	w := plugintest.NewCluster()
	w.Intake.KeepFull()
	w.With(plugintest.Node("a"), plugintest.Pod("p", plugintest.Requests("cpu", "1"), plugintest.HostPort("", "TCP", 80),
		plugintest.OnNode("a")))
	var m nodeInfos
	m.follow(w.Store.Snapshot())
	was := shown(m.all[0])
	c := m.all[0].Snapshot()
	if shown(c) != was {
		t.Errorf("the copy shows %s, want %s", shown(c), was)
	}
	info := c.GetPods()[0]
	if err := c.RemovePod(klog.Background(), info.GetPod()); err != nil {
		t.Fatal(err)
	}
	if c.GetRequested().GetMilliCPU() != 0 || len(c.GetUsedPorts()) != 0 || len(c.GetPods()) != 0 {
		t.Errorf("without its pod the copy shows %s", shown(c))
	}
	if err := c.RemovePod(klog.Background(), info.GetPod()); err == nil {
		t.Error("a pod that is not there can be removed")
	}
	if c.AddPodInfo(info); shown(c) != was || shown(m.all[0]) != was {
		t.Errorf("with its pod again the copy shows %s, the original %s, want %s", shown(c), shown(m.all[0]), was)
	}
}

// BenchmarkChangedRow is the NodeInfo of a row that gets a pod, computed.
func BenchmarkChangedRow(b *testing.B) {
	w := plugintest.BenchCluster()
	var m nodeInfos
	m.follow(w.Store.Snapshot())
	b.ReportAllocs()
	for b.Loop() {
		m.renew(w.Store.Snapshot(), 7)
		m.rows[7].complete()
	}
}
