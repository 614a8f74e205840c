// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// profiles are the default profile and one with plugins that look at more than one row, ahead of and among those that
// do not, and foreign code.
func profiles(t interface{ Fatal(...any) }) map[string]place.Profile {
	uncached := defaultProfile(t)
	// ahead of taints, ports and resources
	uncached.Filters = slices.Insert(slices.Clone(uncached.Filters), 2, plugin.Filter(crowd{}))
	uncached.Scorers = append([]place.Scorer{{Scorer: lonely{}, Weight: 3}}, uncached.Scorers...)
	uncached.Foreign = oddNodes{}
	return map[string]place.Profile{"default": defaultProfile(t), "uncached": uncached}
}

// crowd lets at most two pods of a namespace onto the nodes of one size.
type crowd struct{}

func (crowd) Name() string { return "Crowd" }

func (crowd) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if strings.HasSuffix(p.Name, "0") {
		return plugin.FilterPlan{}
	}
	f := &crowdFilter{pods: map[string]int{}}
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		if node := s.Node(n); node != nil {
			s.EachPod(n, func(*cluster.Pod, bool) { f.pods[node.Labels["size"]]++ })
		}
	}
	return plugin.FilterPlan{Filter: f}
}

type crowdFilter struct {
	pods map[string]int // size -> pods on nodes of it
}

func (f *crowdFilter) AddPod(_ cluster.Snapshot, _ *cluster.Pod, v *cluster.NodeView) {
	f.pods[v.Node.Labels["size"]]++
}

func (f *crowdFilter) RemovePod(_ cluster.Snapshot, _ *cluster.Pod, v *cluster.NodeView) {
	f.pods[v.Node.Labels["size"]]--
}

func (f *crowdFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if f.pods[v.Node.Labels["size"]] >= 2 {
		return 1
	}
	return plugin.Fit
}

func (f *crowdFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if out[n] == plugin.Fits && f.pods[s.Node(n).Labels["size"]] >= 2 {
			out[n] = tag.With(1)
		}
	}
}

func (f *crowdFilter) Reasons(plugin.Code) []string {
	return []string{"too many pods on nodes of this size"}
}

// lonely scores nodes by how few pods they hold, among those that fit.
type lonely struct{}

func (lonely) Name() string          { return "Lonely" }
func (lonely) Normal() plugin.Normal { return plugin.AsIs }
func (lonely) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore {
	panic("asked as if it were local")
}
func (lonely) Skips(_ cluster.Snapshot, p *cluster.Pod) bool { return p.Spec.Priority == 0 }
func (lonelyScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	return int64(len(v.Pods)) * 1000
}
func (sc lonelyScore) most(s cluster.Snapshot, scores []int64) (most int64) {
	return slices.Max(scores)
}
func (lonely) PrepareUncached(_ cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) (plugin.UncachedScore, error) {
	if p.Spec.Priority == 0 {
		return nil, nil
	}
	if len(fit) < 2 {
		return nil, errors.New("scored where nothing needs to be scored")
	}
	return lonelyScore{}, nil
}

type lonelyScore struct{}

func (sc lonelyScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	for i, n := range fit {
		out[i] = sc.Plain(s, s.View(n))
	}
}

func (sc lonelyScore) Normalize(s cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	most := sc.most(s, scores)
	for i, v := range scores {
		if most == 0 {
			scores[i] = plugin.MaxScore
		} else {
			scores[i] = plugin.MaxScore - plugin.MaxScore*v/most
		}
	}
}

// oddNodes is foreign code that rejects node n3 for pods with an odd number, and likes n1.
type oddNodes struct{}

func (oddNodes) Takes(p *cluster.Pod) bool {
	return strings.ContainsAny(p.Name[len(p.Name)-1:], "13579")
}

func (oddNodes) Filter(_ *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	if slices.Contains(nodes, "n3") {
		return map[string]place.ForeignRejection{"n3": {By: "odd", Reason: "odd"}}, nil
	}
	return nil, nil
}

func (oddNodes) Score(_ *cluster.Pod, nodes []string) []place.ForeignScore {
	added := make([]int64, len(nodes))
	for i, n := range nodes {
		if n == "n1" {
			added[i] = 77
		}
	}
	return []place.ForeignScore{{By: "odd", Added: added}}
}

func (oddNodes) Binder(*cluster.Pod) string { return "" }

func (oddNodes) Preempts(*cluster.Pod) bool { return false }

func (oddNodes) Preempt(*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	panic("nobody evicts here")
}

// failing is an uncached plugin that fails at a chosen point.
type failing struct{ at string }

func (failing) Name() string { return "Failing" }

func (f failing) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	if f.at == "prefilter" {
		return plugin.FilterPlan{Err: errors.New("no")}
	}
	return plugin.FilterPlan{Filter: failingFilter{&crowdFilter{}, f.at}}
}

type failingFilter struct {
	*crowdFilter
	at string
}

func (f failingFilter) Failed() error {
	if f.at == "filter" {
		return errors.New("no")
	}
	return nil
}

func (failing) Normal() plugin.Normal                                       { return plugin.AsIs }
func (failing) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }
func (failing) Skips(cluster.Snapshot, *cluster.Pod) bool                   { return false }

func (f failing) PrepareUncached(cluster.Snapshot, *cluster.Pod, []cluster.NodeIdx) (plugin.UncachedScore, error) {
	if f.at == "prescore" {
		return nil, errors.New("no")
	}
	return nil, nil
}

// TestErrorsFailTheAttempt: an error of a plugin fails the attempt with upstream's words, wherever it comes up; one of
// scoring only where two nodes or more fit.
func TestErrorsFailTheAttempt(t *testing.T) {
	for at, want := range map[string]string{
		"prefilter": `running PreFilter plugin "Failing": no`,
		"filter":    `running "Failing" filter plugin: no`,
		"prescore":  `running PreScore plugin "Failing": no`,
		"never":     "",
	} {
		prof := place.Profile{Filters: []plugin.Filter{failing{at}}, Scorers: []place.Scorer{{Scorer: failing{at}, Weight: 1}}}
		s, in := cluster.NewStore(), convert.NewIntake()
		p := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
		for i, name := range []string{"n0", "n1"} {
			s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
			out := place.New(prof, noMeter{}, 1<<20).Place(s.Snapshot(), p, promised{}, func(int) int { return 0 })
			got := ""
			if out.Err != nil {
				got = out.Err.Error()
			}
			if expected := want; got != expected && (at != "prescore" || i == 1 || got != "") {
				t.Errorf("fails at %s, %d nodes: %q, want %q", at, i+1, got, expected)
			}
			if (out.Err == nil) != (out.Node != cluster.NoNode) {
				t.Errorf("fails at %s, %d nodes: error %v and node %d", at, i+1, out.Err, out.Node)
			}
		}
	}
}
