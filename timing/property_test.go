// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// history makes random steps of a scheduler for a few pods, some in gangs. Events may be received long before they are
// taken, and the watch may be faster than an answer.
type history struct {
	t     *rapid.T
	r     *Recorder
	now   record.Time
	round int
	pods  map[int]*modelPod // slot -> the pod in it
	gangs map[string]record.SubQueue
}

// modelPod is what the test knows of a pod.
type modelPod struct {
	ref     record.PodRef
	gang    string
	began   record.Time
	place   place
	pending bool        // the watch has not shown it bound
	from    record.Time // of the bind
}

func (h *history) later() record.Time {
	h.now += record.Time(rapid.IntRange(0, 5).Draw(h.t, "wait"))
	return h.now
}

// before is a moment not after the present one.
func (h *history) before(oldest record.Time) record.Time {
	return max(oldest, h.now-record.Time(rapid.IntRange(0, 8).Draw(h.t, "age")))
}

func (h *history) step(does func(began, ended record.Time)) {
	began := h.later()
	ended := h.later()
	h.r.BeginStep()
	does(began, ended)
	h.r.EndStep(ended)
}

func (h *history) appear(slot int) {
	h.round++
	p := &modelPod{ref: record.PodRef{Namespace: "ns", Name: fmt.Sprintf("p%d", slot), UID: fmt.Sprint(h.round)},
		pending: true, place: queued}
	if slot >= 3 {
		p.gang = fmt.Sprintf("ns/g%d", slot%2)
	}
	h.pods[slot] = p
	h.step(func(began, _ record.Time) {
		p.began = min(h.before(1), began)
		h.r.Observed(p.ref, p.gang, p.began, began, rapid.Bool().Draw(h.t, "listed"))
		// The unit of a gang tells of a member that joins only if the unit moves.
		if p.gang == "" || h.gangs[p.gang] == "" || rapid.Bool().Draw(h.t, "moves") {
			h.move(p, rapid.SampledFrom([]record.SubQueue{record.Gated, record.Active}).Draw(h.t, "to"), began)
		}
	})
}

func (h *history) move(p *modelPod, to record.SubQueue, at record.Time) {
	m := record.QueueMove{Pod: p.ref, Gang: p.gang, To: to, Event: "E", Hint: "H"}
	if p.gang != "" {
		h.gangs[p.gang] = to
		if to == record.Gone {
			delete(h.gangs, p.gang)
		}
	}
	h.r.Moved(&m, at)
}

// cycle tries the unit of a pod: it places all its pods, or none.
func (h *history) cycle(p *modelPod) {
	unit := []*modelPod{p}
	if p.gang != "" {
		unit = unit[:0]
		for slot := range 6 {
			if q := h.pods[slot]; q != nil && q.gang == p.gang && q.place == queued {
				unit = append(unit, q)
			}
		}
	}
	h.step(func(began, ended record.Time) {
		h.move(p, record.InFlight, began)
		if rapid.IntRange(0, 2).Draw(h.t, "fits") == 0 {
			h.move(p, rapid.SampledFrom([]record.SubQueue{record.Unschedulable, record.Backoff}).Draw(h.t, "back"), ended)
			d := record.Decision{Pod: p.ref, Verdict: record.DoesNotFit, Plugins: []string{"A", "B"}}
			if p.gang != "" {
				d.Gang = &record.GangPart{Name: p.gang, Quorum: 2}
			}
			h.r.Decided(&d, ended)
			return
		}
		h.move(p, record.Gone, ended)
		for _, q := range unit {
			d := record.Decision{Pod: q.ref, Verdict: record.Placed, Winner: &record.Candidate{Node: "n"}}
			if q.gang != "" {
				d.Gang = &record.GangPart{Name: q.gang, Quorum: 2}
			}
			h.r.Decided(&d, ended)
			q.place = decided
			if rapid.Bool().Draw(h.t, "prepares") {
				h.r.Preparing(q.ref, ended)
			} else {
				h.bind(q, ended)
			}
		}
	})
}

func (h *history) bind(p *modelPod, at record.Time) {
	h.r.Binding(p.ref, "n", at)
	p.place, p.from = binding, at
}

// answer ends the bind of a pod.
func (h *history) answer(p *modelPod) {
	call := Call{}
	if rapid.Bool().Draw(h.t, "begun") {
		call.Begun = h.before(p.from)
		if rapid.Bool().Draw(h.t, "released") {
			call.Released = h.before(call.Begun)
			call.FirstByte = h.before(call.Released)
		}
	}
	succeeded := rapid.Bool().Draw(h.t, "succeeded")
	h.step(func(began, ended record.Time) {
		h.r.BindEnded(p.ref, call, succeeded, began)
		switch {
		case succeeded:
			p.place = bound
		case p.gang != "" && rapid.Bool().Draw(h.t, "sent again"):
			p.place = decided
		case p.gang != "" && h.gangs[p.gang] != "":
			h.r.Returned(p.ref)
			p.place = queued
		default:
			h.r.Returned(p.ref)
			h.move(p, record.Backoff, began)
			p.place = queued
		}
	})
}

// TestPhasesOfRandomHistoriesHaveNoGaps checks the invariant of journeys at each moment: spans follow each other, and
// of pods that have ended their sum is the time from the first observation to the last, to the nanosecond.
func TestPhasesOfRandomHistoriesHaveNoGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, r: New(Options{}), now: 100, pods: map[int]*modelPod{}, gangs: map[string]record.SubQueue{}}
		ends := map[string]record.Time{} // UID -> when the watch brought the end
		starts := map[string]record.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			slot := rapid.IntRange(0, 5).Draw(t, "slot")
			p := h.pods[slot]
			switch {
			case p == nil:
				h.appear(slot)
				starts[h.pods[slot].ref.UID] = h.pods[slot].began
			case rapid.IntRange(0, 9).Draw(t, "deleted") == 0:
				h.step(func(began, _ record.Time) {
					at := h.before(p.began)
					h.r.Gone(p.ref, at, began)
				})
				delete(h.pods, slot)
			case p.place == queued && rapid.Bool().Draw(t, "moves"):
				to := rapid.SampledFrom([]record.SubQueue{record.Gated, record.Unschedulable, record.Backoff, record.Active}).Draw(t, "to")
				h.step(func(began, _ record.Time) { h.move(p, to, began) })
			case p.place == queued:
				h.cycle(p)
			case p.place == decided:
				h.step(func(_, ended record.Time) { h.bind(p, ended) })
			case (p.place == binding || p.place == bound) && p.pending && rapid.Bool().Draw(t, "seen"):
				p.pending = false
				at := h.before(p.from)
				ends[p.ref.UID] = at
				h.step(func(began, _ record.Time) { h.r.Bound(p.ref, "n", at, began) })
				if p.place == bound {
					delete(h.pods, slot)
				}
			case p.place == binding:
				h.answer(p)
				if !p.pending {
					delete(h.pods, slot)
				}
			}
			out := h.r.Read(Query{Limit: 1000}, h.now, h.now)
			for i := range out.Journeys {
				check(t, &out.Journeys[i], starts, ends)
			}
			for _, g := range out.Gangs {
				checkGang(t, g)
			}
		}
	})
}

func check(t *rapid.T, j *record.Journey, starts, ends map[string]record.Time) {
	if err := j.Check(); err != nil {
		t.Fatalf("%v\n%+v", err, *j)
	}
	if j.Began != starts[j.Pod.UID] {
		t.Fatalf("pod %s began at %d, want %d", j.Pod.UID, j.Began, starts[j.Pod.UID])
	}
	sum := record.Time(0)
	for _, took := range j.Per() {
		sum += took
	}
	if j.Ended != 0 && sum != j.Ended-j.Began {
		t.Fatalf("the phases take %d ns, from the first to the last observation it is %d ns", sum, j.Ended-j.Began)
	}
	if end, seen := ends[j.Pod.UID]; seen && j.End == record.EndBound && j.Ended != end {
		t.Fatalf("pod %s was observed as bound at %d, and its journey ends at %d", j.Pod.UID, end, j.Ended)
	}
}

func checkGang(t *rapid.T, g record.GangTiming) {
	at := g.FirstMember
	for _, next := range []record.Time{g.Quorum, g.Placed, g.FirstBound, g.Whole} {
		if next != 0 && next < at {
			t.Fatalf("the milestones of a gang decrease: %+v", g)
		}
		at = max(at, next)
	}
	sum := record.Time(0)
	for _, s := range g.Phases() {
		sum += s.Took
	}
	if g.Whole != 0 && sum != g.Whole-g.FirstMember {
		t.Fatalf("the phases of a gang take %d ns: %+v", sum, g)
	}
}

// TestPhasesOfRandomEvictionsHaveNoGaps: pods are terminating, go and are evicted in any order, for several pods at once.
// The sum of the phases of an eviction is its whole time, to the nanosecond.
func TestPhasesOfRandomEvictionsHaveNoGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, r: New(Options{}), now: 100}
		calls := func(n int) (list []Call) {
			for range rapid.IntRange(0, n).Draw(t, "begun") {
				c := Call{Begun: h.before(1)}
				if rapid.Bool().Draw(t, "released") {
					c.Released = h.before(c.Begun)
				}
				list = append(list, c)
			}
			return list
		}
		victims, open := map[uint64]int{}, []uint64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			uid := record.PodRef{UID: fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "pod"))}
			switch does := rapid.IntRange(0, 3).Draw(t, "does"); {
			case does == 0:
				n := uint64(len(victims))
				h.step(func(_, ended record.Time) {
					var list []record.PodRef
					for i := range 5 {
						if rapid.Bool().Draw(t, "victim") {
							list = append(list, record.PodRef{UID: fmt.Sprint(i)})
						}
					}
					victims[n], open = len(list), append(open, n)
					h.r.EvictionRequested(record.EvictionTiming{Decision: n, Victims: len(list), Requested: ended}, list)
				})
			case does == 1:
				h.step(func(began, _ record.Time) { h.r.Terminating(uid, h.before(1), began) })
			case does == 2:
				h.step(func(began, _ record.Time) { h.r.Gone(uid, h.before(1), began) })
			case len(open) > 0:
				n := open[0]
				open = open[1:]
				h.step(func(began, _ record.Time) {
					h.r.EvictionEnded(record.PodRef{}, n, rapid.SampledFrom([]string{"", "denied"}).Draw(t, "error"), calls(victims[n]), began)
				})
			}
			for _, e := range h.r.Read(Query{Limit: 1000}, h.now, h.now).Evictions {
				checkEviction(t, &e)
			}
		}
	})
}

func checkEviction(t *rapid.T, e *record.EvictionTiming) {
	if err := e.Check(); err != nil {
		t.Fatalf("%v\n%+v", err, *e)
	}
	whole := func(spans []record.MilestoneSpan, end record.Time) {
		sum, at := record.Time(0), e.Requested
		for _, s := range spans {
			if s.Start != at {
				t.Fatalf("a gap before %+v of %+v", s, *e)
			}
			sum, at = sum+s.Took, s.End()
		}
		if end != 0 && sum != end-e.Requested {
			t.Fatalf("the phases take %d ns of %d: %+v", sum, end-e.Requested, *e)
		}
	}
	whole(e.Phases(), e.Ended())
	for i := range e.Pods {
		whole(e.PhasesOf(&e.Pods[i]), e.Pods[i].Gone)
	}
}
