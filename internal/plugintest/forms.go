// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Reasons is what a filter makes of a pod and a node, in words. It asks both forms and fails when they differ.
func (w *Cluster) Reasons(t *testing.T, f plugin.Filter, p *v1.Pod, nodeName string) (reasons []string,
	unresolvable bool) {
	t.Helper()
	s := w.Store.Snapshot()
	plan := f.PrepareFilter(s, w.Intake.PendingPod(p))
	if plan.Reject != "" {
		return []string{plan.Reject}, true
	}
	if plan.Filter == nil {
		return nil, false
	}
	n, ok := s.Find(nodeName)
	if !ok {
		t.Fatalf("no node %q", nodeName)
	}
	code := plan.Filter.Plain(s, s.View(n))
	out := make([]plugin.Verdict, s.Rows())
	plan.Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(6), out)
	want := plugin.Fits
	if code != plugin.Fit {
		want = plugin.TagOf(6).With(code)
	}
	if out[n] != want {
		t.Errorf("%s on %s: the plain form says %x, the column form %x", f.Name(), nodeName, want, out[n])
	}
	if code == plugin.Fit {
		return nil, false
	}
	return plan.Filter.Reasons(code), code&plugin.Unresolvable != 0
}

// Score is the raw score of a pod on a node; ok is false when the plugin does not score the pod. It asks both forms
// and fails when they differ.
func (w *Cluster) Score(t *testing.T, sc plugin.Scorer, p *v1.Pod, nodeName string) (score int64, ok bool) {
	t.Helper()
	s := w.Store.Snapshot()
	prepared := sc.PrepareScore(s, w.Intake.PendingPod(p))
	if prepared == nil {
		return 0, false
	}
	n, found := s.Find(nodeName)
	if !found {
		t.Fatalf("no node %q", nodeName)
	}
	score = prepared.Plain(s, s.View(n))
	out := make([]int64, s.Rows())
	prepared.Column(s, 0, cluster.NodeIdx(s.Rows()), out)
	if out[n] != score {
		t.Errorf("%s on %s: the plain form scores %d, the column form %d", sc.Name(), nodeName, score, out[n])
	}
	return score, true
}

// prepared are the forms of one plugin for one pod.
type Prepared struct {
	Name   string
	Filter plugin.PodFilter // nil when the plugin does not filter the pod
	Score  plugin.PodScore  // nil when it does not score it
}

func Prepare(s cluster.Snapshot, p *cluster.Pod, plugins []plugin.Plugin) []Prepared {
	var all []Prepared
	for _, pl := range plugins {
		pp := Prepared{Name: pl.Name()}
		if f, ok := pl.(plugin.Filter); ok {
			pp.Filter = f.PrepareFilter(s, p).Filter
		}
		if sc, ok := pl.(plugin.Scorer); ok {
			pp.Score = sc.PrepareScore(s, p)
		}
		all = append(all, pp)
	}
	return all
}

type Failer interface {
	Fatalf(format string, args ...any)
}

// CheckForms holds the column forms against the plain forms on rows lo to hi-1.
func CheckForms(t Failer, s cluster.Snapshot, all []Prepared, lo, hi cluster.NodeIdx) {
	const untouched = -12345
	tag, other := plugin.TagOf(3), plugin.TagOf(1).With(1)
	for _, pp := range all {
		if q, can := pp.Filter.(plugin.Quiet); can && q.Quiet(s) {
			for n := range cluster.NodeIdx(s.Rows()) {
				if s.Node(n) != nil && pp.Filter.Plain(s, s.View(n)) != plugin.Fit {
					t.Fatalf("%s is quiet, and rejects %s", pp.Name, s.NodeName(n))
				}
			}
		}
		verdicts, scores := make([]plugin.Verdict, s.Rows()), make([]int64, s.Rows())
		for n := range verdicts {
			scores[n] = untouched
			if s.Node(cluster.NodeIdx(n)) == nil {
				verdicts[n] = plugin.NoNode
			} else if n%7 == 3 {
				verdicts[n] = other // another filter has rejected this row
			}
		}
		if pp.Filter != nil {
			before := slices.Clone(verdicts)
			pp.Filter.Column(s, lo, hi, tag, verdicts)
			for n := range verdicts {
				want, row := before[n], cluster.NodeIdx(n)
				if row >= lo && row < hi && want == plugin.Fits {
					if code := pp.Filter.Plain(s, s.View(row)); code != plugin.Fit {
						want = tag.With(code)
						if code&plugin.CodeBits == 0 || len(pp.Filter.Reasons(code)) == 0 {
							t.Fatalf("%s rejects %s with code %x, which has no reason", pp.Name, s.NodeName(row), code)
						}
					}
				}
				if verdicts[n] != want {
					t.Fatalf("%s on %q (row %d of range %d to %d): column %x, plain %x", pp.Name, s.NodeName(row), n,
						lo, hi, verdicts[n], want)
				}
			}
		}
		if pp.Score != nil {
			pp.Score.Column(s, lo, hi, scores)
			if h, can := pp.Score.(plugin.PartialScorer); can && h.Part() != nil && (lo+hi)%2 == 0 {
				half := make([]int64, s.Rows())
				h.PartColumn(s, lo, hi, half)
				h.ColumnWithPart(s, lo, hi, half, scores)
			}
			for n := range scores {
				row := cluster.NodeIdx(n)
				switch {
				case row < lo || row >= hi:
					if scores[n] != untouched {
						t.Fatalf("%s wrote row %d outside range %d to %d", pp.Name, n, lo, hi)
					}
				case s.Node(row) != nil:
					if want := pp.Score.Plain(s, s.View(row)); scores[n] != want {
						t.Fatalf("%s on %q (row %d of range %d to %d): column %d, plain %d", pp.Name, s.NodeName(row),
							n, lo, hi, scores[n], want)
					}
				}
			}
		}
	}
}

// WideScores scores a pod on the named nodes as if only they fit. It asks both forms and fails when they differ;
// scored is false when the plugin does not score the pod.
func (w *Cluster) WideScores(t *testing.T, pl plugin.UncachedScorer, p *v1.Pod, nodes ...string) (raw, normal []int64,
	scored bool) {
	t.Helper()
	s := w.Store.Snapshot()
	var fit []cluster.NodeIdx
	for _, name := range nodes {
		n, ok := s.Find(name)
		if !ok {
			t.Fatalf("no node %q", name)
		}
		fit = append(fit, n)
	}
	rec := w.Intake.PendingPod(p)
	score, err := pl.PrepareUncached(s, rec, fit)
	if err != nil {
		t.Fatal(err)
	}
	if skips := pl.Skips(s, rec); skips != (score == nil) {
		t.Errorf("%s: Skips says %v, PrepareUncached gives a score: %v", p.Name, skips, score != nil)
	}
	if score == nil {
		return nil, nil, false
	}
	raw = make([]int64, len(fit))
	score.Rows(s, fit, raw)
	for i, n := range fit {
		if plain := score.Plain(s, s.View(n)); plain != raw[i] {
			t.Errorf("%s on %s: the plain form scores %d, the rows %d", p.Name, nodes[i], plain, raw[i])
		}
	}
	normal = slices.Clone(raw)
	score.Normalize(s, fit, normal)
	return raw, normal, true
}

// Verdict asks both forms of a filter about a node, and fails when they differ. It gives what keeps the pod off the
// node in words: "" when nothing does, "error: ..." when the attempt fails, with "!" in front when eviction is no help.
func (w *Cluster) Verdict(t Failer, f plugin.Filter, p *v1.Pod, nodeName string) string {
	s := w.Store.Snapshot()
	plan := f.PrepareFilter(s, w.Intake.PendingPod(p))
	switch {
	case plan.Err != nil:
		return "error: " + plan.Err.Error()
	case plan.Reject != "" && !plan.Resolvable:
		return "!" + plan.Reject
	case plan.Reject != "":
		return plan.Reject
	case plan.Filter == nil:
		return ""
	}
	n, ok := s.Find(nodeName)
	if !ok {
		t.Fatalf("no node %q", nodeName)
	}
	code := plan.Filter.Plain(s, s.View(n))
	plain := CodeText(plan.Filter, code)
	out := make([]plugin.Verdict, s.Rows())
	for i := range out { // only this row, so that an error is about it
		out[i] = plugin.NoNode
	}
	out[n] = plugin.Fits
	plan.Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(6), out)
	if column := CodeText(plan.Filter, out[n].Code()); column != plain {
		t.Fatalf("%s on %s: the plain form says %q, the column form %q", f.Name(), nodeName, plain, column)
	}
	return plain
}

func CodeText(f plugin.PodFilter, c plugin.Code) string {
	if failing, ok := f.(plugin.Failing); ok && failing.Failed() != nil {
		return "error: " + failing.Failed().Error()
	}
	if c == plugin.Fit {
		return ""
	}
	words := strings.Join(f.Reasons(c), ", ")
	if c&plugin.Unresolvable != 0 {
		return "!" + words
	}
	return words
}
