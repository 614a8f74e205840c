// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// noted is a plugin whose answers are noted.
type noted struct {
	Plugin
	log *Log
	id  int
}

var _ Plugin = noted{}

// Gated notes whether the pod may be queued, and why not.
func (n noted) Gated(s cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	reason, ok = n.Plugin.Gated(s, p)
	if sec := n.log.at(n.id, atPreEnqueue); sec != nil {
		if ok {
			sec.number(0)
		} else {
			sec.number(1 + n.log.text(reason))
		}
	}
	return reason, ok
}

// Before reports whether a pod goes before another one, as far as the pods say, and notes it.
func (n noted) Before(p, q *cluster.Pod) bool {
	return n.EntityBefore(plugin.QueuedEntity{Pod: p}, plugin.QueuedEntity{Pod: q})
}

// EntityBefore reports whether a unit goes before another one, and notes it.
func (n noted) EntityBefore(p, q plugin.QueuedEntity) bool {
	before := n.Plugin.EntityBefore(p, q)
	n.log.bit(n.id, atQueueSort, before)
	return before
}

// Wakes returns the events with hints that note one bit.
func (n noted) Wakes() []plugin.Wake {
	list := slices.Clone(n.Plugin.Wakes())
	for i := range list {
		hint := list[i].Hint
		if hint == nil {
			continue
		}
		list[i].Hint = func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
			answer := hint(p, ch)
			n.log.bit(n.id, atHint, answer == plugin.QueueHint)
			return answer
		}
	}
	return list
}

// What PreFilter leads to, as the first byte says.
const (
	planErr byte = iota
	planReject
	planRejectResolvable
	planNone
	planFilter
	planSupposing
	planNodes byte = 1 << 7 // a bit: names of nodes follow
)

// PrepareFilter notes the outcome of PreFilter.
func (n noted) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	plan := n.Plugin.PrepareFilter(s, p)
	if sec := n.log.at(n.id, atPreFilter); sec != nil {
		sec.plan(n.log, &plan)
	}
	if plan.Filter == nil {
		return plan
	}
	f := &notedFilter{hostedFilter: plan.Filter.(hostedFilter), n: n}
	if _, supposes := plan.Filter.(plugin.Supposing); supposes {
		plan.Filter = notedSupposing{f}
	} else {
		plan.Filter = f
	}
	return plan
}

func (s *section) plan(l *Log, plan *plugin.FilterPlan) {
	kind := planNone
	switch {
	case plan.Err != nil:
		s.byte(planErr)
		s.number(l.text(plan.Err.Error()))
		return
	case plan.Reject != "":
		if kind = planReject; plan.Resolvable {
			kind = planRejectResolvable
		}
		s.byte(kind)
		s.number(l.text(plan.Reject))
		return
	case plan.Filter != nil:
		if kind = planFilter; is[plugin.Supposing](plan.Filter) {
			kind = planSupposing
		}
	}
	if plan.Nodes == nil {
		s.byte(kind)
		return
	}
	s.byte(kind | planNodes)
	names := slices.Sorted(maps.Keys(plan.Nodes))
	s.number(uint64(len(names)))
	for _, name := range names {
		s.number(l.text(name))
	}
}

func is[T any](v any) bool { _, is := v.(T); return is }

// hostedFilter is what a prepared filter of a plugin implements.
type hostedFilter interface {
	plugin.Failing
	plugin.Pender
}

// notedFilter is a prepared filter whose verdicts are noted.
type notedFilter struct {
	hostedFilter
	n noted
	// indexes are the outcomes of codes, of the Step: code without Unresolvable -> index, 0 for none.
	indexes []int
	step    uint64
}

// Plain notes the verdict on one node.
func (f *notedFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	code := f.hostedFilter.Plain(s, v)
	if sec := f.n.log.at(f.n.id, atFilter); sec != nil {
		f.note(sec, code, f.Failed())
	}
	return code
}

// Column notes the verdicts on the rows for which the plugin was called: those that fitted, in order, up to the first
// error.
func (f *notedFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	log := f.n.log
	log.before = append(log.before[:0], out[lo:hi]...)
	f.hostedFilter.Column(s, lo, hi, tag, out)
	sec := log.at(f.n.id, atFilter)
	if sec == nil {
		return
	}
	err, last := f.Failed(), hi-1
	if err != nil { // the plugin was not called for the rows behind the last one that does not fit
		for last >= lo && (log.before[last-lo] != plugin.Fits || out[last] == plugin.Fits) {
			last--
		}
	}
	for row := lo; row <= last; row++ {
		switch v := out[row]; {
		case log.before[row-lo] != plugin.Fits:
		case v == plugin.Fits:
			sec.verdict(0)
		case row == last:
			f.note(sec, v.Code(), err)
		default:
			f.note(sec, v.Code(), nil)
		}
	}
}

// note notes a verdict.
func (f *notedFilter) note(sec *section, code plugin.Code, err error) {
	switch {
	case err != nil:
		sec.verdict(sec.outcome(f.n.log, failed, []string{err.Error()}))
		return
	case code == plugin.Fit:
		sec.verdict(0)
		return
	}
	if f.step != f.n.log.step {
		f.indexes, f.step = f.indexes[:0], f.n.log.step
	}
	at := int(code & plugin.CodeBits)
	for len(f.indexes) <= at {
		f.indexes = append(f.indexes, 0)
	}
	if f.indexes[at] == 0 {
		var flags byte
		if code&plugin.Unresolvable != 0 {
			flags |= unresolvable
		}
		if f.Pending(code) {
			flags |= pending
		}
		f.indexes[at] = sec.outcome(f.n.log, flags, f.Reasons(code))
	}
	sec.verdict(f.indexes[at])
}

// notedSupposing is a notedFilter of a plugin with PreFilterExtensions. These answer with verdicts.
type notedSupposing struct{ *notedFilter }

var (
	_ plugin.Supposing = notedSupposing{}
	_ hostedFilter     = notedSupposing{}
)

// AddPod calls the plugin.
func (f notedSupposing) AddPod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.hostedFilter.(plugin.Supposing).AddPod(s, other, v)
}

// RemovePod calls the plugin.
func (f notedSupposing) RemovePod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.hostedFilter.(plugin.Supposing).RemovePod(s, other, v)
}

// The bits of a Help.
const (
	helpLast byte = 1 << iota
	helpNominates
)

// PreparePostFilter returns a call whose answer is noted.
func (n noted) PreparePostFilter(s cluster.Snapshot, p *cluster.Pod,
	rejected func(cluster.NodeIdx) plugin.NodeRejection) func() plugin.Help {
	call := n.Plugin.PreparePostFilter(s, p, rejected)
	return func() plugin.Help {
		help := call()
		if sec := n.log.at(n.id, atPostFilter); sec != nil {
			sec.help(n.log, &help)
		}
		return help
	}
}

func (s *section) help(l *Log, help *plugin.Help) {
	var flags byte
	if help.Last {
		flags |= helpLast
	}
	if help.Nominates {
		flags |= helpNominates
	}
	s.byte(flags)
	s.number(l.text(help.Message))
	s.number(l.text(help.Node))
	s.number(uint64(len(help.Others)))
	for i := range help.Others {
		other := &help.Others[i]
		for _, text := range [...]string{other.Node, other.Pod.Namespace, other.Pod.Name, other.Pod.UID} {
			s.number(l.text(text))
		}
	}
}
