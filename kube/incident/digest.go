// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Digester makes digests of effects. It is used by one goroutine.
type Digester struct {
	buf []byte
	one [1]engine.Effect
}

// Digest returns a number that is equal for equal effects of one event, on every machine. It covers every field of the
// effects but the path of decisions, in which an engine that was resumed may differ, and what foreign code answered,
// which is an input. Frequent effects are read field by field, which takes some hundred nanoseconds for a decision;
// the others by their JSON.
func (d *Digester) Digest(effects []engine.Effect) uint64 {
	if len(effects) == 0 {
		return 0
	}
	b := d.buf[:0]
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Moved:
			b = appendMove(append(b, 'm'), &f.Move)
		case engine.Decided:
			b = d.appendDecision(append(b, 'd'), &f.Decision)
		case engine.Wake:
			b = number(append(b, 'w'), int64(f.At))
		case engine.Heard:
		case engine.WriteEvent:
			b = fields(podRef(append(b, 'e'), &f.Pod), f.Type, f.Reason, f.Action, f.Note)
		case engine.Bind:
			b = podRef(append(b, 'b'), &f.Pod)
			b = number(fields(b, f.Node, f.Via), int64(f.Decision))
			if g := f.Gang; g != nil {
				b = number(number(text(b, g.Name), int64(g.Quorum)), int64(g.Decision))
			}
		default:
			d.one[0] = f
			b = recording.AppendEffects(append(b, 'j'), d.one[:])
		}
	}
	d.buf, d.one[0] = b, nil
	return xxhash.Sum64(b)
}

// Sum returns a digest of text.
func Sum(text []byte) uint64 { return xxhash.Sum64(text) }

func text(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func fields(b []byte, all ...string) []byte {
	for _, s := range all {
		b = text(b, s)
	}
	return b
}

func number(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

func podRef(b []byte, p *record.PodRef) []byte { return fields(b, p.Namespace, p.Name, p.UID) }

func appendMove(b []byte, m *record.QueueMove) []byte {
	b = number(podRef(b, &m.Pod), int64(m.At))
	return fields(b, m.Gang, string(m.From), string(m.To), m.Event, m.Hint, m.Cause)
}

func (d *Digester) appendDecision(b []byte, r *record.Decision) []byte {
	b = podRef(b, &r.Pod)
	for _, n := range [...]int64{int64(r.Number), int64(r.At), int64(r.Revision), int64(r.Attempt), int64(r.Nodes),
		int64(r.Feasible), int64(r.Tied)} {
		b = number(b, n)
	}
	b = fields(b, r.Profile, r.Instance, string(r.Verdict), r.PreFilter, r.Message)
	b = fields(number(b, int64(len(r.Plugins))), r.Plugins...)
	b = candidate(candidate(b, r.Winner), r.RunnerUp)
	b = number(b, int64(len(r.Reasons)))
	for i := range r.Reasons {
		why := &r.Reasons[i]
		b = number(number(fields(b, why.Plugin, why.Reason), int64(why.Nodes)), int64(why.Unresolvable))
		b = fields(number(b, int64(len(why.Examples))), why.Examples...)
	}
	if r.Gang != nil || r.Preemption != nil { // both are rare beside what they cost
		part := record.Decision{Gang: r.Gang, Preemption: r.Preemption}
		d.one[0] = engine.Decided{Decision: part}
		b = recording.AppendEffects(b, d.one[:])
	}
	return b
}

func candidate(b []byte, c *record.Candidate) []byte {
	if c == nil {
		return append(b, 0)
	}
	b = number(text(append(b, 1), c.Node), c.Total)
	b = number(b, int64(len(c.Scores)))
	for i := range c.Scores {
		s := &c.Scores[i]
		b = number(number(text(b, s.Plugin), s.Raw), s.Weighted)
	}
	return b
}
