// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Log notes the answers of plugins. It belongs to the goroutine of the engine. Answers outside of a Step, to questions,
// are not noted.
type Log struct {
	host Host
	on   bool
	step uint64 // counts Steps

	texts    []string       // of the Step
	textOf   map[string]int // text -> its index
	sections []section      // of the Step, in the order of their first use
	out      []byte
	before   []plugin.Verdict // space
}

// NewLog returns a Log without plugins.
func NewLog() *Log { return &Log{textOf: map[string]int{}} }

// SetHooks sets Host.Hooks.
func (l *Log) SetHooks(hooks bool) { l.host.Hooks = hooks }

// Host describes the plugins. The caller must not change it.
func (l *Log) Host() *Host { return &l.host }

// Plugin returns a plugin whose answers are noted.
func (l *Log) Plugin(of Source, pl Plugin) Plugin {
	l.host.Sources = append(l.host.Sources, of)
	return noted{pl, l, len(l.host.Sources) - 1}
}

// Reserver returns what reserves for the plugins of a profile, with answers that are noted.
func (l *Log) Reserver(profile string, r plugin.Deferrer) plugin.Deferrer {
	l.host.Sources = append(l.host.Sources, Source{Profile: profile, Name: r.Name(), Reserves: true})
	return notedReserver{r, l, len(l.host.Sources) - 1}
}

// PlacementsName is the name under which recordings have what proposes placements for all plugins of a profile.
const PlacementsName = "FrameworkPlacements"

// Placements returns what proposes placements for the plugins of a profile, with answers that are noted.
func (l *Log) Placements(profile string, p plugin.Placements) plugin.Placements {
	l.host.Sources = append(l.host.Sources, Source{Profile: profile, Name: PlacementsName, Places: true})
	return notedPlacements{p, l, len(l.host.Sources) - 1}
}

// section is the answers of one plugin at one point in a Step.
type section struct {
	tag tag
	buf []byte
	// bits counts the answers of one bit in buf.
	bits int
	// Of atFilter: the different outcomes, and the run of equal ones that is not in buf.
	outcomes []byte
	known    map[string]int // outcome -> its index
	last     int
	run      int
	key      []byte // space
}

// Begin begins a Step.
func (l *Log) Begin() {
	l.on = true
	l.step++
}

// End ends a Step and returns its answers, nil if there are none. They stay good.
func (l *Log) End() []byte {
	l.on = false
	if len(l.sections) == 0 {
		return nil
	}
	out := binary.AppendUvarint(l.out[:0], uint64(len(l.texts)))
	for _, text := range l.texts {
		out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
	}
	for i := range l.sections {
		s := &l.sections[i]
		out = binary.AppendUvarint(out, uint64(s.tag))
		body := s.body()
		out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	}
	l.out, l.texts, l.sections = out, l.texts[:0], l.sections[:0]
	clear(l.textOf)
	return slices.Clone(out)
}

// body returns the bytes of a section.
func (s *section) body() []byte {
	switch s.tag.point() {
	case atQueueSort, atHint, atPreScore:
		return append(binary.AppendUvarint(nil, uint64(s.bits)), s.buf...)
	case atFilter:
		s.endRun()
		out := binary.AppendUvarint(nil, uint64(len(s.known)))
		return append(append(out, s.outcomes...), s.buf...)
	}
	return s.buf
}

// at returns the section of a source at a point; nil outside of a Step.
func (l *Log) at(source int, at point) *section {
	if !l.on {
		return nil
	}
	t := tagOf(source, at)
	for i := range l.sections {
		if l.sections[i].tag == t {
			return &l.sections[i]
		}
	}
	if n := len(l.sections); n < cap(l.sections) { // its space is used again
		l.sections = l.sections[:n+1]
		s := &l.sections[n]
		clear(s.known)
		*s = section{tag: t, buf: s.buf[:0], outcomes: s.outcomes[:0], known: s.known, key: s.key}
		return s
	}
	l.sections = append(l.sections, section{tag: t})
	return &l.sections[len(l.sections)-1]
}

// text returns the index of a text.
func (l *Log) text(text string) uint64 {
	i, known := l.textOf[text]
	if !known {
		i = len(l.texts)
		l.texts = append(l.texts, strings.Clone(text))
		l.textOf[text] = i
	}
	return uint64(i)
}

// bit notes an answer of one bit.
func (l *Log) bit(source int, at point, yes bool) {
	s := l.at(source, at)
	if s == nil {
		return
	}
	if s.bits%8 == 0 {
		s.buf = append(s.buf, 0)
	}
	if yes {
		s.buf[len(s.buf)-1] |= 1 << (s.bits % 8)
	}
	s.bits++
}

func (s *section) number(n uint64) { s.buf = binary.AppendUvarint(s.buf, n) }
func (s *section) signed(n int64)  { s.buf = binary.AppendVarint(s.buf, n) }
func (s *section) byte(b byte)     { s.buf = append(s.buf, b) }

// failure notes an error, which may be nil.
func (s *section) failure(l *Log, err error) {
	if err == nil {
		s.number(0)
		return
	}
	s.number(1 + l.text(err.Error()))
}

// The flags of an outcome: what a Filter says of a node, besides that the pod fits.
const (
	unresolvable byte = 1 << iota
	pending
	failed
	afterLastFlag
)

// outcome returns the index of an outcome, 1 for the first one; 0 means that the pod fits. reasons are those of the
// rejection, or the text of the error.
func (s *section) outcome(l *Log, flags byte, reasons []string) int {
	key := binary.AppendUvarint(append(s.key[:0], flags), uint64(len(reasons)))
	for _, reason := range reasons {
		key = binary.AppendUvarint(key, l.text(reason))
	}
	s.key = key
	index, known := s.known[string(key)]
	if !known {
		if s.known == nil {
			s.known = map[string]int{}
		}
		index = len(s.known) + 1
		s.known[string(key)] = index
		s.outcomes = append(s.outcomes, key...)
	}
	return index
}

// verdict notes an outcome for one node.
func (s *section) verdict(index int) {
	if s.run > 0 && s.last == index {
		s.run++
		return
	}
	s.endRun()
	s.last, s.run = index, 1
}

// endRun writes a run of equal outcomes: the index, with one bit for a run of more than one, and then the length.
func (s *section) endRun() {
	switch {
	case s.run == 1:
		s.number(uint64(s.last) << 1)
	case s.run > 1:
		s.number(uint64(s.last)<<1 | 1)
		s.number(uint64(s.run - 2))
	}
	s.run = 0
}
