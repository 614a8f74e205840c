// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// answering is a plugin and what reserves for it, with drawn answers.
type answering struct {
	t       *rapid.T
	answers int
	codes   []plugin.Code // of one prepared filter
	failed  error
}

func (a *answering) draw(n int) int {
	a.answers++
	return rapid.IntRange(0, n-1).Draw(a.t, "answer")
}

func (a *answering) text() string { return fmt.Sprint("text ", a.draw(4)) }

func (a *answering) err() error {
	if a.draw(4) > 0 {
		return nil
	}
	return errors.New(a.text())
}

func (a *answering) Name() string { return "A" }

func (a *answering) Shared() plugin.Shared { return nil }

func (a *answering) Gated(cluster.Snapshot, *cluster.Pod) (string, bool) {
	if a.draw(2) == 0 {
		return "", true
	}
	return a.text(), false
}

func (a *answering) Before(*cluster.Pod, *cluster.Pod) bool { panic("not called") }

func (a *answering) EntityBefore(plugin.QueuedEntity, plugin.QueuedEntity) bool {
	return a.draw(2) == 0
}

func (a *answering) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}},
		{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.Delete, Label: "x"},
			Hint: func(*cluster.Pod, plugin.Change) plugin.Hint { return plugin.Hint(a.draw(2)) }}}
}

func (a *answering) PrepareFilter(cluster.Snapshot, *cluster.Pod) (plan plugin.FilterPlan) {
	a.codes = nil
	switch a.draw(6) {
	case 0:
		plan.Err = errors.New(a.text())
	case 1:
		plan.Reject, plan.Resolvable = a.text(), a.draw(2) == 0
	case 2:
		plan.Nodes = map[string]struct{}{}
		for range a.draw(3) {
			plan.Nodes[a.text()] = struct{}{}
		}
	case 3:
		plan.Filter = answeringSupposing{answeringFilter{a}}
	case 4:
		plan.Filter = answeringFilter{a}
	}
	return plan
}

// answeringFilter numbers its rejections in the order in which they occur.
type answeringFilter struct{ a *answering }

func (f answeringFilter) Plain(cluster.Snapshot, *cluster.NodeView) plugin.Code {
	f.a.failed = nil
	switch n := f.a.draw(8); {
	case n < 4:
		return plugin.Fit
	case n < 7: // three rejections, the last of which is unresolvable and pending
		code := plugin.Code(n-3) | plugin.Code(n/6)*plugin.Unresolvable
		at := slices.Index(f.a.codes, code)
		if at < 0 {
			at = len(f.a.codes)
			f.a.codes = append(f.a.codes, code)
		}
		return plugin.Code(at+1) | code&plugin.Unresolvable
	}
	f.a.failed = errors.New(f.a.text())
	at := slices.Index(f.a.codes, 9)
	if at < 0 {
		at = len(f.a.codes)
		f.a.codes = append(f.a.codes, 9)
	}
	return plugin.Code(at+1) | plugin.Unresolvable
}

func (f answeringFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	f.a.failed = nil
	for n := lo; n < hi && f.a.failed == nil; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := f.Plain(s, nil); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

func (f answeringFilter) Reasons(c plugin.Code) []string {
	return []string{fmt.Sprint("reason ", f.a.codes[c&plugin.CodeBits-1]&plugin.CodeBits)}
}

func (f answeringFilter) Pending(c plugin.Code) bool {
	return f.a.codes[c&plugin.CodeBits-1] == 3|plugin.Unresolvable
}

func (f answeringFilter) Failed() error { return f.a.failed }

type answeringSupposing struct{ answeringFilter }

func (answeringSupposing) AddPod(cluster.Snapshot, *cluster.Pod, *cluster.NodeView)    {}
func (answeringSupposing) RemovePod(cluster.Snapshot, *cluster.Pod, *cluster.NodeView) {}

func (a *answering) PreparePostFilter(cluster.Snapshot, *cluster.Pod,
	func(cluster.NodeIdx) plugin.NodeRejection) func() plugin.Help {
	return func() plugin.Help {
		help := plugin.Help{Message: a.text(), Last: a.draw(2) == 0, Nominates: a.draw(2) == 0, Node: a.text()}
		for range a.draw(3) {
			help.Others = append(help.Others, record.Nomination{Node: a.text(),
				Pod: record.PodRef{Namespace: a.text(), Name: a.text(), UID: a.text()}})
		}
		return help
	}
}

func (a *answering) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }
func (a *answering) Normal() plugin.Normal                                       { return plugin.AsIs }
func (a *answering) Skips(cluster.Snapshot, *cluster.Pod) bool                   { return false }

func (a *answering) SkipsAmong(cluster.Snapshot, *cluster.Pod, *plugin.FitRows) bool {
	return a.draw(2) == 0
}

func (a *answering) PrepareUncached(cluster.Snapshot, *cluster.Pod, []cluster.NodeIdx) (plugin.UncachedScore, error) {
	switch a.draw(4) {
	case 0:
		return nil, nil
	case 1:
		return nil, errors.New(a.text())
	}
	return answeringScore{a}, nil
}

type answeringScore struct{ a *answering }

func (sc answeringScore) Plain(cluster.Snapshot, *cluster.NodeView) int64 {
	return int64(sc.a.draw(9)) - 4
}

func (sc answeringScore) Rows(_ cluster.Snapshot, _ []cluster.NodeIdx, out []int64) {
	sc.a.answers++
	values := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64Range(0, 2), rapid.Int64Range(0, 100),
		rapid.Int64()}).Draw(sc.a.t, "values")
	for i := range out {
		out[i] = values.Draw(sc.a.t, "raw")
	}
}

func (sc answeringScore) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	if sc.a.draw(2) == 0 {
		return
	}
	for i := range scores {
		scores[i] = int64(sc.a.draw(101))
	}
}

func (sc answeringScore) Failed() error { return sc.a.err() }

func (a *answering) Reserve(*cluster.Trial, *cluster.Pod, cluster.NodeIdx) plugin.Reserved {
	switch a.draw(5) {
	case 0:
		return plugin.Reserved{By: a.text(), Reject: a.text()}
	case 1:
		return plugin.Reserved{By: a.text(), Err: errors.New(a.text()), Worded: a.draw(2) == 0}
	case 2:
		return plugin.Reserved{}
	}
	return plugin.Reserved{Hold: answeringHold{a}}
}

func (a *answering) ReserveLater(*cluster.Pod, cluster.NodeIdx) plugin.Deferred {
	return answeringHold{a}
}

func (a *answering) Generate(cluster.Snapshot, []*cluster.Pod) (got plugin.Candidates) {
	switch a.draw(5) {
	case 0:
		got.Err = errors.New(a.text())
	case 1:
		got.By, got.Rejected = a.text(), a.text()
	case 2:
	default:
		got.Search = a
		for range 1 + a.draw(3) {
			got.List = append(got.List, a.candidate())
		}
	}
	return got
}

func (a *answering) candidate() plugin.Candidate {
	c := plugin.Candidate{Name: a.text()}
	switch a.draw(4) {
	case 0:
		c.Err = errors.New(a.text())
	case 1: // all nodes
	default:
		c.Rows = []cluster.NodeIdx{}
		for row := range cluster.NodeIdx(rowsAsked) {
			if a.draw(2) == 0 {
				c.Rows = append(c.Rows, row)
			}
		}
	}
	return c
}

func (*answering) Enter(int) {}
func (*answering) Leave(int) {}

func (a *answering) Totals(_ cluster.Snapshot, tries []plugin.CandidatePlacement) ([]int64, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	totals := make([]int64, len(tries))
	for i := range totals {
		totals[i] = int64(a.draw(301))
	}
	return totals, nil
}

type answeringHold struct{ a *answering }

func (h answeringHold) Keep(cluster.Snapshot) plugin.Reserved {
	got := h.a.Reserve(nil, nil, 0)
	got.Hold = nil
	return got
}

func (answeringHold) Writes() []cluster.Write                      { return nil }
func (answeringHold) Release(*cluster.Trial, bool) []cluster.Write { return nil }

func (h answeringHold) Ready(_ cluster.Snapshot, now record.Time) plugin.Readiness {
	switch h.a.draw(5) {
	case 0:
		return plugin.Readiness{By: h.a.text(), Reject: h.a.text()}
	case 1:
		return plugin.Readiness{By: h.a.text(), Err: errors.New(h.a.text()), Worded: h.a.draw(2) == 0}
	case 2:
		return plugin.Readiness{}
	case 3:
		return plugin.Readiness{Again: now + record.Time(1+h.a.draw(100))}
	}
	return plugin.Readiness{Ready: true}
}

// asked is a list of calls, and what came of them.
type asked struct {
	calls []int
	got   []any
}

const rowsAsked = 9

// ask makes a call of a plugin or its reserver, and notes what it returns.
func (a *asked) ask(call int, pl Plugin, r plugin.Deferrer, ps plugin.Placements) {
	var s cluster.Snapshot
	note := func(v ...any) { a.got = append(a.got, fmt.Sprintf("%d: %+v", call, v)) }
	switch call {
	case 0:
		reason, ok := pl.Gated(s, nil)
		note(reason, ok)
	case 1:
		note(pl.EntityBefore(plugin.QueuedEntity{}, plugin.QueuedEntity{}), pl.Before(nil, nil))
	case 2:
		note(pl.Wakes()[1].Hint(nil, plugin.Change{}))
	case 3:
		a.filter(note, pl.PrepareFilter(s, nil))
	case 4:
		note(pl.PreparePostFilter(s, nil, nil)())
	case 5:
		note(pl.SkipsAmong(s, nil, nil))
	case 6:
		a.score(note, pl)
	case 7:
		got := r.Reserve(nil, nil, 0)
		note(got.By, got.Reject, got.Err, got.Worded, got.Hold != nil)
		if got.Hold != nil {
			note(got.Hold.Ready(s, 1000))
		}
	case 8:
		later := r.ReserveLater(nil, 0)
		got := later.Keep(s)
		note(got.By, got.Reject, got.Err, got.Worded)
		if got.Err == nil && got.Reject == "" {
			note(later.Ready(s, 1000))
		}
	case 9:
		a.place(note, ps)
	}
}

func (a *asked) place(note func(...any), ps plugin.Placements) {
	got := ps.Generate(withRows, nil)
	note(got.By, got.Rejected, got.Err, got.Search != nil)
	for _, c := range got.List {
		note(c.Name, c.Rows, c.Rows == nil, c.Err)
	}
	if got.Search == nil {
		return
	}
	got.Search.Enter(0)
	if len(got.List) > 1 {
		note(got.Search.Totals(withRows, make([]plugin.CandidatePlacement, len(got.List))))
	}
	got.Search.Leave(-1)
}

// withRows is a state with as many nodes as are asked about.
var withRows = func() cluster.Snapshot {
	store := cluster.NewStore()
	for i := range rowsAsked {
		store.SetNode(&cluster.Node{Name: fmt.Sprint("n", i)})
	}
	return store.Snapshot()
}()

func (a *asked) filter(note func(...any), plan plugin.FilterPlan) {
	_, supposes := plan.Filter.(plugin.Supposing)
	note(plan.Err, plan.Reject, plan.Resolvable, plan.Nodes, plan.Filter != nil, supposes)
	if plan.Filter == nil {
		return
	}
	f, tag := plan.Filter.(hostedFilter), plugin.TagOf(2)
	about := func(c plugin.Code) {
		if c != plugin.Fit && f.Failed() == nil {
			note(c, f.Reasons(c), f.Pending(c))
		} else {
			note(c, f.Failed())
		}
	}
	about(f.Plain(cluster.Snapshot{}, nil))
	column := make([]plugin.Verdict, rowsAsked)
	column[1], column[4] = plugin.NoNode, plugin.TagOf(1).With(3)
	f.Column(cluster.Snapshot{}, 0, rowsAsked-1, tag, column)
	note(column, f.Failed())
	f.Column(cluster.Snapshot{}, rowsAsked-1, rowsAsked, tag, column)
	note(column, f.Failed())
	about(f.Plain(cluster.Snapshot{}, nil))
}

func (a *asked) score(note func(...any), pl Plugin) {
	score, err := pl.PrepareUncached(cluster.Snapshot{}, nil, nil)
	note(score != nil, err)
	if score == nil {
		return
	}
	note(score.Plain(cluster.Snapshot{}, nil))
	values := make([]int64, rowsAsked)
	score.Rows(cluster.Snapshot{}, nil, values)
	note(slices.Clone(values))
	score.Normalize(cluster.Snapshot{}, nil, values)
	note(slices.Clone(values), score.(plugin.FailingScore).Failed())
}

// TestStandInsAnswerAsThePlugins: what stands in for plugins gives the noted answers to the same calls, Step by Step,
// and the same bytes. It catches runLengthLost and nodesNotNoted.
func TestStandInsAnswerAsThePlugins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, log := &answering{t: t}, NewLog()
		source := Source{Profile: "p", Name: "A", Points: []string{"filter"}, Wakes: WakesOf(live.Wakes())}
		pl, r, ps := log.Plugin(source, live), log.Reserver("p", live), log.Placements("p", live)
		recorded := NewRecorded(*log.Host())
		standIn, standInReserver := recorded.Plugin(source, live), recorded.Reserver("p", live)
		standInPlaces := recorded.Placements("p", live)
		for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
			calls := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 30).Draw(t, "calls")
			var then, now asked
			log.Begin()
			for _, call := range calls {
				then.ask(call, pl, r, ps)
			}
			answers := log.End()
			asks := live.answers
			recorded.Set(answers)
			recorded.Begin()
			for _, call := range calls {
				now.ask(call, standIn, standInReserver, standInPlaces)
			}
			again := recorded.End()
			if recorded.Err() != nil || live.answers != asks || string(again) != string(answers) {
				t.Fatalf("step %d: error %v, %d calls of the plugin, bytes %x, then %x", step, recorded.Err(),
					live.answers-asks, again, answers)
			}
			if !reflect.DeepEqual(then.got, now.got) {
				t.Fatalf("step %d:\n then %v\n now  %v", step, then.got, now.got)
			}
			same, err := Rewrite(answers, func(text string) string { return text })
			if len(answers) > 0 && (err != nil || string(same) != string(answers)) {
				t.Fatalf("rewritten: %x, then %x, %v", same, answers, err)
			}
		}
	})
}

// TestAnswersOutsideOfSteps: answers to questions are not noted, and a replay does not know them.
func TestAnswersOutsideOfSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, live := NewLog(), &answering{t: t}
		pl := log.Plugin(Source{Name: "A"}, live)
		log.Begin()
		log.End()
		pl.Gated(cluster.Snapshot{}, nil)
		log.Begin()
		if got := log.End(); got != nil {
			t.Fatalf("noted: %x", got)
		}
		recorded := NewRecorded(*log.Host())
		if reason, ok := recorded.Plugin(Source{Name: "A"}, live).Gated(cluster.Snapshot{}, nil); ok || reason == "" {
			t.Fatalf("answered: %q, %v", reason, ok)
		}
		if recorded.Err() != nil {
			t.Fatalf("a question is an error: %v", recorded.Err())
		}
	})
}

// TestAnswersThatDoNotFit: missing answers, answers of other calls and answers that are left over are errors that name
// the plugin and the extension point. It catches leftOverIgnored.
func TestAnswersThatDoNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, log := &answering{t: t}, NewLog()
		source := Source{Profile: "p", Name: "A", Wakes: WakesOf(live.Wakes())}
		pl, r, ps := log.Plugin(source, live), log.Reserver("p", live), log.Placements("p", live)
		calls := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 12).Draw(t, "calls")
		log.Begin()
		var then asked
		for _, call := range calls {
			then.ask(call, pl, r, ps)
		}
		answers := log.End()
		for _, other := range [][]int{calls[1:], append(slices.Clone(calls), calls[0])} {
			recorded := NewRecorded(*log.Host())
			standIn, standInReserver := recorded.Plugin(source, live), recorded.Reserver("p", live)
			standInPlaces := recorded.Placements("p", live)
			recorded.Set(answers)
			recorded.Begin()
			var now asked
			for _, call := range other {
				now.ask(call, standIn, standInReserver, standInPlaces)
			}
			recorded.End()
			if err := recorded.Err(); err == nil || !strings.Contains(err.Error(), `of profile "p" at `) {
				t.Fatalf("calls %v, then %v: %v", other, calls, err)
			}
		}
	})
}

// FuzzRecorded: answers may be anything. Calls return, and what is wrong is an error.
func FuzzRecorded(f *testing.F) {
	f.Add([]byte{}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{1, 1, 'x', 1, 1, 1}, []byte{0})                                             // PreEnqueue refuses
	f.Add([]byte{0, 5, 13, 1, 1, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte{3}) // a run of many nodes
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte{3, 3})
	f.Add([]byte{0, 8, 8, 2, 2, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{6})
	f.Add([]byte{1, 1, 'x', 44, 7, 3, 1, 0, 1, 2, 1, 0xff}, []byte{9}) // a row that does not exist
	f.Fuzz(func(t *testing.T, answers, calls []byte) {
		live := &answering{}
		source := Source{Profile: "p", Name: "A", Wakes: []Wake{{}, {Hint: true}}}
		recorded := NewRecorded(Host{Sources: []Source{source, {Profile: "p", Name: "A", Reserves: true},
			{Profile: "p", Name: PlacementsName, Places: true}}})
		pl, r, ps := recorded.Plugin(source, live), recorded.Reserver("p", live), recorded.Placements("p", live)
		recorded.Set(answers)
		recorded.Begin()
		var now asked
		for _, call := range calls[:min(len(calls), 100)] {
			now.ask(int(call%10), pl, r, ps)
		}
		recorded.End()
		if live.answers > 0 {
			t.Error("the plugin itself is called")
		}
		_, _ = Rewrite(answers, strings.ToUpper)
	})
}

// TestPlacementsOfRowsThatAreGone: a recorded placement with a row that has no node is an error. It catches
// placementOfAnyRow.
func TestPlacementsOfRowsThatAreGone(t *testing.T) {
	live := &candidateOf{rows: []cluster.NodeIdx{2, rowsAsked}}
	log := NewLog()
	ps := log.Placements("p", live)
	log.Begin()
	ps.Generate(withRows, nil)
	recorded := NewRecorded(*log.Host())
	standIn := recorded.Placements("p", live)
	recorded.Set(log.End())
	recorded.Begin()
	got := standIn.Generate(withRows, nil)
	if got.Err == nil || !strings.Contains(got.Err.Error(), `"FrameworkPlacements" of profile "p" at placementGenerate`) {
		t.Errorf("candidates %v, error %v", got.List, got.Err)
	}
}

// candidateOf proposes one placement.
type candidateOf struct {
	answering
	rows []cluster.NodeIdx
}

func (c *candidateOf) Generate(cluster.Snapshot, []*cluster.Pod) plugin.Candidates {
	return plugin.Candidates{List: []plugin.Candidate{{Name: "x", Rows: c.rows}}, Search: c}
}
