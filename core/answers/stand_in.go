// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// standIn answers in place of a plugin.
type standIn struct {
	Plugin // for its name and what it shares; it is not called otherwise
	r      *Recorded
	id     int
}

var _ Plugin = standIn{}

// Gated returns the noted answer.
func (p standIn) Gated(cluster.Snapshot, *cluster.Pod) (reason string, ok bool) {
	s, err := p.r.at(p.id, atPreEnqueue)
	if err != nil {
		return err.Error(), false
	}
	n := s.number()
	if n == 0 {
		return "", s.err == nil
	}
	return s.textAt(n - 1), false
}

// Before reports whether a pod goes before another one.
func (p standIn) Before(*cluster.Pod, *cluster.Pod) bool { return p.yes(atQueueSort) }

// EntityBefore reports whether a unit goes before another one.
func (p standIn) EntityBefore(plugin.QueuedEntity, plugin.QueuedEntity) bool {
	return p.yes(atQueueSort)
}

func (p standIn) yes(at point) bool {
	s, err := p.r.at(p.id, at)
	return err == nil && s.yes()
}

// Wakes returns the events that the recording names.
func (p standIn) Wakes() []plugin.Wake {
	if p.id < 0 {
		return nil
	}
	list := []plugin.Wake{}
	for _, w := range p.r.host.Sources[p.id].Wakes {
		wake := plugin.Wake{Event: w.Event, Alike: w.Alike}
		if w.Hint {
			wake.Hint = func(*cluster.Pod, plugin.Change) plugin.Hint {
				if p.yes(atHint) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}
		}
		list = append(list, wake)
	}
	return list
}

// PrepareFilter returns the noted outcome of PreFilter.
func (p standIn) PrepareFilter(cluster.Snapshot, *cluster.Pod) (plan plugin.FilterPlan) {
	s, err := p.r.at(p.id, atPreFilter)
	if err != nil {
		return plugin.FilterPlan{Err: err}
	}
	kind := s.byte()
	if kind&planNodes != 0 {
		plan.Nodes = map[string]struct{}{}
		for _, name := range s.list() {
			plan.Nodes[name] = struct{}{}
		}
	}
	f := &filterStandIn{of: p}
	switch kind &^ planNodes {
	case planErr:
		plan.Err = errors.New(s.text())
	case planReject, planRejectResolvable:
		plan.Reject, plan.Resolvable = s.text(), kind == planRejectResolvable
	case planNone:
	case planFilter:
		plan.Filter = f
	case planSupposing:
		plan.Filter = supposingStandIn{f}
	default:
		s.broken("an unknown outcome")
	}
	if s.err != nil {
		return plugin.FilterPlan{Err: s.err}
	}
	return plan
}

// filterStandIn answers in place of a prepared filter. As the plugin's own, it numbers the different rejections in the
// order in which they occur in a decision, and has one number for all errors.
type filterStandIn struct {
	of         standIn
	failed     error
	numbers    map[uint64]plugin.Code // index of an outcome -> its code
	rejections []outcome              // by number
	failure    plugin.Code            // of errors; 0 before the first
}

var _ hostedFilter = (*filterStandIn)(nil)

// Plain returns the noted verdict.
func (f *filterStandIn) Plain(cluster.Snapshot, *cluster.NodeView) plugin.Code {
	f.failed = nil
	return f.next()
}

// Column writes the noted verdicts on the rows that fit so far, up to the first error.
func (f *filterStandIn) Column(_ cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	f.failed = nil
	for n := lo; n < hi && f.failed == nil; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := f.next(); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

// next returns the next verdict.
func (f *filterStandIn) next() plugin.Code {
	s, err := f.of.r.at(f.of.id, atFilter)
	if err != nil {
		return f.fails(err)
	}
	index, o := s.verdict()
	switch {
	case s.err != nil:
		return f.fails(s.err)
	case o == nil:
		return plugin.Fit
	case o.flags&failed != 0:
		if len(o.reasons) != 1 {
			s.broken("an error without a text")
			return f.fails(s.err)
		}
		return f.fails(errors.New(o.reasons[0]))
	}
	if code, known := f.numbers[index]; known {
		return code
	}
	if f.numbers == nil {
		f.numbers = map[uint64]plugin.Code{}
	}
	f.numbers[index] = f.number(*o)
	return f.numbers[index]
}

func (f *filterStandIn) fails(err error) plugin.Code {
	f.failed = err
	if f.failure == 0 {
		f.failure = f.number(outcome{flags: unresolvable})
	}
	return f.failure
}

// number returns the code of a new rejection.
func (f *filterStandIn) number(o outcome) plugin.Code {
	if len(f.rejections) >= int(plugin.CodeBits) {
		return plugin.CodeBits | plugin.Unresolvable
	}
	f.rejections = append(f.rejections, o)
	code := plugin.Code(len(f.rejections))
	if o.flags&unresolvable != 0 {
		code |= plugin.Unresolvable
	}
	return code
}

// Reasons returns the noted texts.
func (f *filterStandIn) Reasons(c plugin.Code) []string {
	return f.rejections[c&plugin.CodeBits-1].reasons
}

// Pending reports whether the status was Pending.
func (f *filterStandIn) Pending(c plugin.Code) bool {
	return f.rejections[c&plugin.CodeBits-1].flags&pending != 0
}

// Failed returns the error of the last use.
func (f *filterStandIn) Failed() error { return f.failed }

// supposingStandIn answers in place of a filter of a plugin with PreFilterExtensions.
type supposingStandIn struct{ *filterStandIn }

var (
	_ plugin.Supposing = supposingStandIn{}
	_ hostedFilter     = supposingStandIn{}
)

// AddPod does nothing: verdicts have what it leads to.
func (supposingStandIn) AddPod(cluster.Snapshot, *cluster.Pod, *cluster.NodeView) {}

// RemovePod does nothing.
func (supposingStandIn) RemovePod(cluster.Snapshot, *cluster.Pod, *cluster.NodeView) {}

// PreparePostFilter returns a call that returns the noted answer.
func (p standIn) PreparePostFilter(cluster.Snapshot, *cluster.Pod,
	func(cluster.NodeIdx) plugin.NodeRejection) func() plugin.Help {
	return func() (help plugin.Help) {
		s, err := p.r.at(p.id, atPostFilter)
		if err != nil {
			return plugin.Help{Message: err.Error(), Last: true}
		}
		flags := s.byte()
		help.Last, help.Nominates = flags&helpLast != 0, flags&helpNominates != 0
		help.Message, help.Node = s.text(), s.text()
		n := s.number()
		for range min(n, uint64(len(s.rest))) {
			if s.err == nil {
				help.Others = append(help.Others, record.Nomination{Node: s.text(),
					Pod: record.PodRef{Namespace: s.text(), Name: s.text(), UID: s.text()}})
			}
		}
		return help
	}
}

// PrepareScore is not called, because a plugin of the framework is an UncachedScorer.
func (standIn) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Skips reports whether the plugin scores nothing as far as is known before: no, as of the plugins themselves.
func (standIn) Skips(cluster.Snapshot, *cluster.Pod) bool { return false }

// SkipsAmong reports whether the plugin scores nothing.
func (p standIn) SkipsAmong(cluster.Snapshot, *cluster.Pod, *plugin.FitRows) bool {
	return p.yes(atPreScore)
}

// PrepareUncached returns the noted outcome of PreScore.
func (p standIn) PrepareUncached(cluster.Snapshot, *cluster.Pod, []cluster.NodeIdx) (plugin.UncachedScore, error) {
	s, err := p.r.at(p.id, atScore)
	if err != nil {
		return nil, err
	}
	switch s.byte() {
	case scoreNone:
		return nil, s.err
	case scoreErr:
		return nil, errors.New(s.text())
	case scoreRows:
		return &scoreStandIn{of: p}, s.err
	}
	s.broken("an unknown outcome")
	return nil, s.err
}

// scoreStandIn answers in place of a prepared score.
type scoreStandIn struct {
	of  standIn
	raw []int64 // of the last Rows
	err error   // of the answers
}

var _ plugin.FailingScore = (*scoreStandIn)(nil)

// Plain returns the noted score.
func (sc *scoreStandIn) Plain(cluster.Snapshot, *cluster.NodeView) int64 {
	s, err := sc.of.r.at(sc.of.id, atScore)
	if err != nil {
		return 0
	}
	return s.signed()
}

// Rows writes the noted raw scores.
func (sc *scoreStandIn) Rows(_ cluster.Snapshot, _ []cluster.NodeIdx, out []int64) {
	sc.read(out, nil)
	sc.raw = append(sc.raw[:0], out...)
}

// Normalize writes the noted normalised scores.
func (sc *scoreStandIn) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, out []int64) {
	sc.read(out, sc.raw)
}

func (sc *scoreStandIn) read(out, before []int64) {
	s, err := sc.of.r.at(sc.of.id, atScore)
	if err == nil {
		s.scores(out, before)
		err = s.err
	}
	if err != nil && sc.err == nil {
		sc.err = err
	}
}

// Failed returns the noted error.
func (sc *scoreStandIn) Failed() error {
	if sc.err != nil {
		return sc.err
	}
	s, err := sc.of.r.at(sc.of.id, atScore)
	if err != nil {
		return err
	}
	return s.error()
}

// standInReserver answers in place of what reserves for plugins.
type standInReserver struct {
	name string
	r    *Recorded
	id   int
}

var (
	_ plugin.Deferrer = standInReserver{}
	_ plugin.Resumer  = standInReserver{}
)

// Name returns its name.
func (p standInReserver) Name() string { return p.name }

// Reserve returns the noted answer.
func (p standInReserver) Reserve(*cluster.Trial, *cluster.Pod, cluster.NodeIdx) plugin.Reserved {
	return p.next()
}

func (p standInReserver) next() (got plugin.Reserved) {
	s, err := p.r.at(p.id, atReserve)
	if err != nil {
		return plugin.Reserved{Err: err}
	}
	kind, by, reject, err := s.refusal()
	got.By, got.Reject, got.Err, got.Worded = by, reject, err, kind == failsWorded
	if kind == accepted && s.err == nil {
		got.Hold = reservationStandIn{p}
	}
	return got
}

// ReserveLater returns a reservation that has the noted answers.
func (p standInReserver) ReserveLater(*cluster.Pod, cluster.NodeIdx) plugin.Deferred {
	return reservationStandIn{p}
}

// NoFacts returns the facts of any reservation.
func (standInReserver) NoFacts() any { return &noFacts{} }

// Resume returns a reservation.
func (p standInReserver) Resume(any) (plugin.Reservation, error) { return reservationStandIn{p}, nil }

// reservationStandIn is a reservation that has the noted answers.
type reservationStandIn struct{ p standInReserver }

var (
	_ plugin.Deferred           = reservationStandIn{}
	_ plugin.Factual            = reservationStandIn{}
	_ plugin.WaitingReservation = reservationStandIn{}
)

// Facts returns no facts.
func (reservationStandIn) Facts() any { return &noFacts{} }

// Keep returns the noted answer.
func (r reservationStandIn) Keep(cluster.Snapshot) plugin.Reserved {
	got := r.p.next()
	got.Hold = nil
	return got
}

// Writes returns none.
func (reservationStandIn) Writes() []cluster.Write { return nil }

// Ready returns the noted answer.
func (r reservationStandIn) Ready(_ cluster.Snapshot, now record.Time) (got plugin.Readiness) {
	s, err := r.p.r.at(r.p.id, atPermit)
	if err != nil {
		return plugin.Readiness{Err: err}
	}
	kind, by, reject, err := s.refusal()
	got.By, got.Reject, got.Err, got.Worded = by, reject, err, kind == failsWorded
	switch kind {
	case accepted:
		got.Ready = s.err == nil
	case waitsUntil:
		got.Again = now + record.Time(s.signed())
	}
	return got
}

// Rejecters returns the names of what reserves and of the plugins of its profile, if there were any.
func (r reservationStandIn) Rejecters() []string {
	s, err := r.p.r.at(r.p.id, atRejecters)
	if err != nil || s.byte() == 0 {
		return nil
	}
	return r.p.r.rejecters(r.p.id)
}

// Release has no effect.
func (reservationStandIn) Release(*cluster.Trial, bool) []cluster.Write { return nil }

// refusal reads the kind of an answer, and of a refusal the plugin and the reason.
func (s *reader) refusal() (kind byte, by, reject string, err error) {
	switch kind = s.byte(); kind {
	case accepted, holdsNothing, waits, waitsUntil:
	case rejects:
		by, reject = s.text(), s.text()
	case fails, failsWorded:
		by, err = s.text(), errors.New(s.text())
	default:
		s.broken("an unknown answer")
	}
	if s.err != nil {
		err = s.err
	}
	return kind, by, reject, err
}
