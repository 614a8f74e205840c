// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kumiki-scheduler/kumiki/record"
)

// redactor removes from answers what is in other namespaces than one: names become counts or record.OtherNamespace. It
// returns copies and does not change its arguments, which share memory with the rings.
//
// Each list is filtered by the type of its items. Free text is searched for namespace/name, the only form in which
// messages of kumiki name an object of another namespace. A text that an extender or a custom plugin writes about a pod
// is also in the pod's condition, which a reader of the pod can see.
type redactor struct{ namespace string }

// pod returns a report without names of other namespaces.
func (n redactor) pod(r record.PodReport) record.PodReport {
	r.Only = n.namespace
	r.Gang, r.Group = n.key(r.Gang), n.key(r.Group)
	r.Before, r.Paused = n.texts(r.Before), n.pause(r.Paused)
	r.Last, r.Evicted = n.decision(r.Last), n.decision(r.Evicted)
	r.Fit, r.Preemption = n.fit(r.Fit), n.preemption(r.Preemption)
	r.Moves, _ = keep(r.Moves, n.sees)
	for i := range r.Moves {
		r.Moves[i] = n.move(r.Moves[i])
	}
	return r
}

// gang returns a report without names of other namespaces.
func (n redactor) gang(r record.GangReport) record.GangReport {
	r.Only = n.namespace
	r.SparedFor, r.Reason, r.Basis = n.key(r.SparedFor), n.text(r.Reason), n.text(r.Basis)
	r.Pods, _ = keep(r.Pods, func(p record.GangPod) bool { return n.ours(p.Pod) })
	for i := range r.Pods {
		r.Pods[i].Note = n.text(r.Pods[i].Note)
	}
	r.Fit, r.Preemption = n.gangFit(r.Fit), n.preemption(r.Preemption)
	r.Last, r.Evicted = n.decision(r.Last), n.decision(r.Evicted)
	r.Holds, r.HeldByOther = n.hold(r.Holds), n.hold(r.HeldByOther)
	return r
}

// queue returns a report whose entries are of the namespace; its counts are of all.
func (n redactor) queue(r record.QueueReport) record.QueueReport {
	r.Only, r.Paused = n.namespace, n.pause(r.Paused)
	r.Entries, _ = keep(r.Entries, func(e record.QueueEntry) bool { return n.ours(e.Pod) })
	for i := range r.Entries {
		r.Entries[i].Gang = n.key(r.Entries[i].Gang)
	}
	return r
}

// gangs returns a list whose gangs are of the namespace; its counts are of all.
func (n redactor) gangs(r record.GangList) record.GangList {
	r.Only, r.Paused = n.namespace, n.pause(r.Paused)
	r.Gangs, _ = keep(r.Gangs, func(e record.GangEntry) bool { return n.oursKey(e.Name) })
	for i := range r.Gangs {
		e := &r.Gangs[i]
		e.Reason, e.Verdict, e.Holds = n.text(e.Reason), n.text(e.Verdict), n.hold(e.Holds)
		if e.Pod != nil && !n.ours(*e.Pod) {
			e.Pod = nil
		}
	}
	return r
}

// whatIf returns an answer without names of other namespaces.
func (n redactor) whatIf(r record.WhatIf) record.WhatIf {
	r.Only, r.Gang = n.namespace, n.key(r.Gang)
	if r.Pod != nil && !n.ours(*r.Pod) {
		r.Pod = nil
	}
	r.If = slices.Clone(r.If)
	for i := range r.If {
		r.If[i].If, r.If[i].Does = n.text(r.If[i].If), n.text(r.If[i].Does)
	}
	r.Now, r.Then, r.Notes = n.prospect(r.Now), n.prospect(r.Then), n.texts(r.Notes)
	if r.Moved != nil {
		m := *r.Moved
		m.Blocked, m.BlockedElsewhere = keep(m.Blocked, func(b record.BlockedPod) bool { return n.ours(b.Pod) })
		for i := range m.Blocked {
			m.Blocked[i].Message = n.text(m.Blocked[i].Message)
		}
		r.Moved = &m
	}
	return r
}

// refusal returns why a question has no answer, without names of other namespaces.
func (n redactor) refusal(unanswered error) error {
	var no *record.Refusal
	switch {
	case unanswered == nil:
		return nil
	case errors.As(unanswered, &no):
		out := *no
		out.Message = n.text(no.Message)
		return &out
	}
	return errors.New(n.text(unanswered.Error()))
}

func (n redactor) prospect(p record.Prospect) record.Prospect {
	p.Places, _ = keep(p.Places, func(at record.Nomination) bool { return n.ours(at.Pod) })
	p.Fit, p.Gang, p.Preemption = n.fit(p.Fit), n.gangFit(p.Gang), n.preemption(p.Preemption)
	p.Reason = n.text(p.Reason)
	return p
}

// sees reports whether a move is of the namespace.
func (n redactor) sees(m record.QueueMove) bool { return n.ours(m.Pod) }

func (n redactor) move(m record.QueueMove) record.QueueMove {
	m.Gang, m.Cause = n.key(m.Gang), n.text(m.Cause)
	return m
}

// decision returns nil for a decision on a pod of another namespace.
func (n redactor) decision(d *record.Decision) *record.Decision {
	if d == nil || !n.ours(d.Pod) {
		return nil
	}
	out := *d
	out.PreFilter, out.Message = n.text(d.PreFilter), n.text(d.Message)
	out.Reasons, out.Preemption = n.reasons(d.Reasons), n.preemption(d.Preemption)
	if d.Gang != nil {
		part := *d.Gang
		part.Name, part.Verdict, part.Proof = n.key(part.Name), n.text(part.Verdict), n.text(part.Proof)
		out.Gang = &part
	}
	return &out
}

func (n redactor) fit(f *record.Fit) *record.Fit {
	if f == nil {
		return nil
	}
	out := *f
	out.PreFilterReason, out.Reasons = n.text(f.PreFilterReason), n.reasons(f.Reasons)
	out.Remedies = slices.Clone(f.Remedies)
	for i := range out.Remedies {
		out.Remedies[i].Do = n.text(out.Remedies[i].Do)
	}
	return &out
}

func (n redactor) reasons(list []record.Reason) []record.Reason {
	out := slices.Clone(list)
	for i := range out {
		out[i].Reason = n.text(out[i].Reason)
	}
	return out
}

func (n redactor) gangFit(f *record.GangFit) *record.GangFit {
	if f == nil {
		return nil
	}
	out := *f
	out.Message, out.Proof = n.text(f.Message), n.text(f.Proof)
	return &out
}

// preemption counts the pods and units of other namespaces.
func (n redactor) preemption(p *record.Preemption) *record.Preemption {
	if p == nil {
		return nil
	}
	out, left := *p, record.Elsewhere{}
	unit := func(u record.VictimUnit) bool { return n.oursKey(u.Name) }
	out.Victims, left.Victims = keep(p.Victims, func(v record.Victim) bool { return n.ours(v.Pod) })
	out.Denominated, left.Denominated = keep(p.Denominated, n.ours)
	out.Units, left.Units = keep(p.Units, unit)
	out.Considered, left.Considered = keep(p.Considered, unit)
	out.Awaited, left.Awaited = keep(p.Awaited, n.ours)
	out.Stuck, left.Stuck = keep(p.Stuck, n.ours)
	out.Places, _ = keep(p.Places, func(at record.Nomination) bool { return n.ours(at.Pod) })
	for i := range out.Units {
		out.Units[i].Why = n.text(out.Units[i].Why)
	}
	for i := range out.Considered {
		out.Considered[i].Why = n.text(out.Considered[i].Why)
	}
	out.Others = slices.Clone(p.Others)
	for i := range out.Others {
		out.Others[i].Why = n.text(out.Others[i].Why)
	}
	out.Message = n.text(p.Message)
	if left != (record.Elsewhere{}) {
		out.Elsewhere = &left
	}
	return &out
}

// hold removes the name and the nodes of a gang of another namespace.
func (n redactor) hold(h *record.GangHold) *record.GangHold {
	if h == nil || n.oursKey(h.Gang) {
		return h
	}
	out := *h
	out.Gang, out.Nodes = record.OtherNamespace, nil
	return &out
}

// pause removes the user who paused: the name of a service account contains a namespace.
func (n redactor) pause(p *record.Pause) *record.Pause {
	if p == nil {
		return nil
	}
	return &record.Pause{Since: p.Since, Reason: n.text(p.Reason)}
}

// keep returns the items for which see holds, in new memory, and the number of the others.
func keep[T any](list []T, see func(T) bool) (kept []T, others int) {
	for _, item := range list {
		if see(item) {
			kept = append(kept, item)
		} else {
			others++
		}
	}
	return kept, others
}

func (n redactor) ours(p record.PodRef) bool { return p.Namespace == n.namespace }

// oursKey reports whether namespace/name is of the namespace.
func (n redactor) oursKey(key string) bool { return strings.HasPrefix(key, n.namespace+"/") }

// key returns namespace/name, or OtherNamespace instead of one of another namespace.
func (n redactor) key(key string) string {
	if key == "" || n.oursKey(key) {
		return key
	}
	return record.OtherNamespace
}

func (n redactor) texts(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = n.text(out[i])
	}
	return out
}

// slashed matches words with slashes, such as namespace/name, 0/5 and example.com/gpu.
var slashed = regexp.MustCompile(`[A-Za-z0-9][-A-Za-z0-9._]*(/[-A-Za-z0-9._]+)+`)

// text replaces each namespace/name of another namespace.
func (n redactor) text(s string) string {
	if !strings.Contains(s, "/") {
		return s
	}
	var out strings.Builder
	end := 0
	for _, at := range slashed.FindAllStringIndex(s, -1) {
		word := strings.TrimRight(s[at[0]:at[1]], ".")
		stop := at[0] + len(word)
		label := strings.HasPrefix(s[at[1]:], "=")                                          // key=value
		port := at[0] > 0 && s[at[0]-1] == ':' && isNumber(word[:strings.Index(word, "/")]) // of a URL
		if label || port || !n.namesOther(word) {
			continue
		}
		out.WriteString(s[end:at[0]])
		out.WriteString(record.OtherNamespace)
		end = stop
	}
	out.WriteString(s[end:])
	return out.String()
}

// namesOther reports whether a word can name an object of another namespace. A prefix with a dot is that of a label or
// a resource, because a namespace has none; two numbers are a count of nodes.
func (n redactor) namesOther(word string) bool {
	parts := strings.Split(word, "/")
	for i := range len(parts) - 1 {
		namespace, name := parts[i], parts[i+1]
		switch {
		case namespace == n.namespace || isNumber(namespace) && isNumber(name):
		case len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0:
			return true
		}
	}
	return false
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
