// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// PostFilter is a plugin that is asked between the Remediers and the evictions of a profile.
type PostFilter struct {
	plugin.PostFilter
	// After is how many of these are asked before it; the evictions are the last of them.
	After int
}

// help is what came of asking for help for a pod that fits nowhere.
type help struct {
	victims evict.Plan
	evicts  bool     // evictions were asked
	texts   []string // for the message, in order
	writes  []cluster.Write
	last    bool // nothing else is asked
	// asked is set if a PostFilter was asked: then a nomination stays unless one changes it.
	asked, nominates bool
	node             string
	others           []record.Nomination
}

// acts reports whether the attempt has effects besides messages and evictions.
func (h *help) acts() bool {
	return len(h.writes)+len(h.others) > 0 || h.asked && (h.nominates || h.last)
}

// postFilter asks for help for a pod that fits nowhere: the Remediers, then evictions, and between them the
// PostFilters, up to the first that ends the round (upstream: framework/runtime, RunPostFilterPlugins).
func (e *Engine) postFilter(prof *profile, p *cluster.Pod, out place.Outcome) help {
	var h help
	if out.Nodes == 0 { // only delays are followed
		h.victims, h.evicts = e.evictions.ForPod(&prof.evicts, p, out, e.count.decisions), true
		return h
	}
	calls := e.postFilters(prof, p, out)
	for i := 0; i <= len(prof.Remediers)+1; i++ {
		for k, f := range prof.PostFilters {
			if f.After == i && calls != nil && !h.last {
				e.cfg.Meter.Plugin(plugin.AtPostFilter, f.Name())
				h.hear(calls[k]())
			}
		}
		switch {
		case h.last:
		case i < len(prof.Remediers):
			e.remedy(&h, prof, prof.Remediers[i], p, out)
		case i == len(prof.Remediers):
			e.askEvictions(&h, prof, p, out)
		}
	}
	if len(h.writes) > 0 { // nothing answers them: what they change comes back as an event, and wakes p
		e.emit(Release{Pod: p.Ref(), Writes: h.writes})
	}
	return h
}

// postFilters prepares the PostFilters of a profile, nil for a pod of a group: its pods are not asked for one by one
// (upstream: runSchedulingAlgorithm).
func (e *Engine) postFilters(prof *profile, p *cluster.Pod, out place.Outcome) []func() plugin.Help {
	if len(prof.PostFilters) == 0 || p.Gang != nil {
		return nil
	}
	rejected := prof.placer.Rejections(out)
	calls := make([]func() plugin.Help, len(prof.PostFilters))
	for i, f := range prof.PostFilters {
		calls[i] = f.PreparePostFilter(e.store.Snapshot(), p, rejected)
	}
	return calls
}

// hear takes the answer of a PostFilter.
func (h *help) hear(answer plugin.Help) {
	h.asked, h.last = true, answer.Last
	if answer.Last {
		h.texts, h.nominates = nil, false
	}
	h.texts = append(h.texts, answer.Message)
	if answer.Nominates {
		h.nominates, h.node = true, answer.Node
	}
	h.others = append(h.others, answer.Others...)
}

// unprepared is what upstream's PostFilter says when a plugin before its own rejected the pod for all nodes: what
// it looks for was never written (fwk.ErrNotFound). It is an error, after which no other plugin is asked.
const unprepared = "not found"

// remedy lets a plugin give up something that keeps p from every node. The first that does so is the last asked. The
// text is upstream's.
func (e *Engine) remedy(h *help, prof *profile, r plugin.Remedier, p *cluster.Pod, out place.Outcome) {
	if !prof.placer.Prepared(out, r.Name()) {
		h.texts, h.nominates, h.last = []string{unprepared}, false, true
		if prof.Preemption != nil {
			h.victims.Verdict, h.evicts = preempt.Failed, true
		}
		return
	}
	if len(h.writes) > 0 {
		return
	}
	e.cfg.Meter.Plugin(plugin.AtPostFilter, r.Name())
	writes, text := r.Remedy(e.store.Snapshot(), p)
	h.texts, h.writes = append(h.texts, text), writes
}

// askEvictions looks for pods to evict.
func (e *Engine) askEvictions(h *help, prof *profile, p *cluster.Pod, out place.Outcome) {
	h.victims = e.evictions.ForPod(&prof.evicts, p, out, e.count.decisions)
	h.evicts = prof.Preemption != nil
	switch h.victims.Verdict {
	case preempt.Evict: // upstream then drops the messages of the plugins before
		h.texts, h.nominates, h.last = []string{h.victims.Found(e.store.Snapshot())}, false, true
		return
	case preempt.Failed:
		h.nominates, h.last = false, true
	case preempt.NotHelpful: // ends the nomination
		h.nominates = false
	}
	h.texts = append(h.texts, h.victims.Message)
}

// nominate acts on the plan of evictions and on what PostFilters nominate, for a pod that is back in the queue. It
// returns what the status of the pod is to show.
func (e *Engine) nominate(p *cluster.Pod, h *help, d *record.Decision) evict.Shown {
	held := e.queue.NominationOf(p.UID)
	var shown evict.Shown
	if h.evicts || !h.asked {
		shown = e.evictions.ActForPod(p, h.victims, d)
	} else if held == "" {
		e.queue.NominateAsStatus(p)
	}
	if h.nominates {
		e.queue.Nominate(p, h.node)
		shown = evict.Shown{Node: h.node, Cleared: h.node == "" && (p.Nominated != "" || held != "")}
	}
	e.nominateOthers(h.others)
	return shown
}

// nominateOthers changes nominations of pods that wait; those of other pods are ignored.
func (e *Engine) nominateOthers(list []record.Nomination) {
	for _, n := range list {
		p := e.pending[cluster.UID(n.Pod.UID)]
		if p == nil || e.binds.of[p.UID] != nil {
			e.queue.RepeatNominations(n.Node)
			continue
		}
		e.queue.Nominate(p, n.Node)
	}
}
