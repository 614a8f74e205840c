// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/binary"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// SkipsAmong reports whether the plugin scores nothing, and notes it.
func (n noted) SkipsAmong(s cluster.Snapshot, p *cluster.Pod, fit *plugin.FitRows) bool {
	skips := n.Plugin.SkipsAmong(s, p, fit)
	n.log.bit(n.id, atPreScore, skips)
	return skips
}

// What PreScore leads to, as a byte says.
const (
	scoreNone byte = iota
	scoreErr
	scoreRows
)

// PrepareUncached notes whether the plugin scores the pod.
func (n noted) PrepareUncached(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) (plugin.UncachedScore,
	error) {
	score, err := n.Plugin.PrepareUncached(s, p, fit)
	if sec := n.log.at(n.id, atScore); sec != nil {
		switch {
		case err != nil:
			sec.byte(scoreErr)
			sec.number(n.log.text(err.Error()))
		case score == nil:
			sec.byte(scoreNone)
		default:
			sec.byte(scoreRows)
		}
	}
	if score == nil || err != nil {
		return nil, err
	}
	return &notedScore{FailingScore: score.(plugin.FailingScore), n: n}, nil
}

// notedScore is a prepared score whose values are noted.
type notedScore struct {
	plugin.FailingScore
	n   noted
	raw []int64 // of the last Rows
}

// Plain notes the score of one node.
func (sc *notedScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	raw := sc.FailingScore.Plain(s, v)
	if sec := sc.n.log.at(sc.n.id, atScore); sec != nil {
		sec.signed(raw)
	}
	return raw
}

// Rows notes the raw scores.
func (sc *notedScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	sc.FailingScore.Rows(s, fit, out)
	if sec := sc.n.log.at(sc.n.id, atScore); sec != nil {
		sec.scores(out, nil)
		sc.raw = append(sc.raw[:0], out...)
	}
}

// Normalize notes the normalised scores.
func (sc *notedScore) Normalize(s cluster.Snapshot, fit []cluster.NodeIdx, scores []int64) {
	sc.FailingScore.Normalize(s, fit, scores)
	if sec := sc.n.log.at(sc.n.id, atScore); sec != nil {
		sec.scores(scores, sc.raw)
	}
}

// Failed notes the error.
func (sc *notedScore) Failed() error {
	err := sc.FailingScore.Failed()
	if sec := sc.n.log.at(sc.n.id, atScore); sec != nil {
		sec.failure(sc.n.log, err)
	}
	return err
}

// The forms of scores, as a byte says.
const (
	formSame   byte = iota // as the scores before
	formSingle             // each value
	formRuns               // pairs of a value and how often it follows again
	formSigned byte = 1 << 7
)

// scores notes values in the shorter form.
func (s *section) scores(values, before []int64) {
	if before != nil && slices.Equal(values, before) {
		s.byte(formSame)
		return
	}
	var sign byte
	if slices.ContainsFunc(values, func(v int64) bool { return v < 0 }) {
		sign = formSigned
	}
	number := func(v int64) uint64 {
		if sign != 0 {
			return uint64(v)<<1 ^ uint64(v>>63)
		}
		return uint64(v)
	}
	s.byte(formRuns | sign)
	start := len(s.buf)
	single := 0
	for i := 0; i < len(values); {
		run := 1
		for i+run < len(values) && values[i+run] == values[i] {
			run++
		}
		before := len(s.buf)
		s.number(number(values[i]))
		single += run * (len(s.buf) - before)
		s.number(uint64(run - 1))
		i += run
	}
	if single >= len(s.buf)-start {
		return
	}
	s.buf = s.buf[:start]
	s.buf[start-1] = formSingle | sign
	for _, v := range values {
		s.buf = binary.AppendUvarint(s.buf, number(v))
	}
}
