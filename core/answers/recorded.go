// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Recorded answers in place of plugins what a recording has. It belongs to the goroutine of the engine. Outside of a
// Step, to questions, it answers that it does not know.
type Recorded struct {
	host Host
	on   bool

	next     []byte // of the next Step
	raw      []byte // of the Step
	texts    []string
	sections map[tag]*reader
	order    []tag // of sections
	err      error // the first
}

// NewRecorded returns what answers in place of the plugins that a recording describes.
func NewRecorded(h Host) *Recorded { return &Recorded{host: h, sections: map[tag]*reader{}} }

// Host describes the plugins. The caller must not change it.
func (r *Recorded) Host() *Host { return &r.host }

// Set sets the answers of the next Step.
func (r *Recorded) Set(answers []byte) { r.next = answers }

// Err returns the first error: answers that cannot be read, that are missing, do not fit, or are left over.
func (r *Recorded) Err() error { return r.err }

// source returns the index of a source, -1 for none.
func (r *Recorded) source(like Source) int {
	for i := range r.host.Sources {
		s := &r.host.Sources[i]
		if s.Profile == like.Profile && s.Name == like.Name && s.Reserves == like.Reserves && s.Places == like.Places {
			return i
		}
	}
	return -1
}

// rejecters returns the names of what reserves, and of the plugins of its profile in their order.
func (r *Recorded) rejecters(id int) []string {
	of := r.host.Sources[id]
	names := []string{of.Name}
	for _, s := range r.host.Sources {
		if s.Profile == of.Profile && !s.Reserves && !s.Places {
			names = append(names, s.Name)
		}
	}
	return names
}

// Plugin returns what stands in for a plugin; live is not called.
func (r *Recorded) Plugin(of Source, live Plugin) Plugin {
	return standIn{live, r, r.source(Source{Profile: of.Profile, Name: of.Name})}
}

// Reserver returns what stands in for what reserves for the plugins of a profile.
func (r *Recorded) Reserver(profile string, live plugin.Deferrer) plugin.Deferrer {
	return standInReserver{live.Name(), r, r.source(Source{Profile: profile, Name: live.Name(), Reserves: true})}
}

// Placements returns what stands in for what proposes placements for the plugins of a profile.
func (r *Recorded) Placements(profile string, _ plugin.Placements) plugin.Placements {
	return standInPlacements{r, r.source(Source{Profile: profile, Name: PlacementsName, Places: true})}
}

// Begin begins a Step.
func (r *Recorded) Begin() {
	r.on, r.raw, r.next = true, r.next, nil
	clear(r.sections)
	r.order, r.texts = r.order[:0], r.texts[:0]
	if len(r.raw) == 0 {
		return
	}
	if err := r.parse(r.raw); err != nil {
		r.keep(fmt.Errorf("reading the answers of plugins: %w", err))
	}
}

// End ends a Step and returns its answers, nil if there are none. Answers that are left over are an error.
func (r *Recorded) End() []byte {
	r.on = false
	for _, t := range r.order {
		if s := r.sections[t]; !s.ended() {
			r.fail(t, "the recording has answers for which there is no call")
		}
	}
	return r.raw
}

func (r *Recorded) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// fail keeps an error about a plugin.
func (r *Recorded) fail(t tag, what string) error {
	err := fmt.Errorf("an unknown plugin at %s: %s", t.point(), what)
	if i := t.source(); i < len(r.host.Sources) && i >= 0 {
		s := &r.host.Sources[i]
		err = fmt.Errorf("plugin %q of profile %q at %s: %s", s.Name, s.Profile, t.point(), what)
	}
	r.keep(err)
	return err
}

// errShort is the error of bytes that end early.
var errShort = errors.New("it ends early")

// take takes a number off the front of bytes.
func take(b []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errShort
	}
	return n, b[size:], nil
}

// takeBytes takes a length and as many bytes off the front.
func takeBytes(b []byte) (part, rest []byte, err error) {
	n, b, err := take(b)
	if err != nil || n > uint64(len(b)) {
		return nil, nil, errShort
	}
	return b[:n:n], b[n:], nil
}

// takeTexts takes the texts off the front of the answers of a Step.
func takeTexts(b []byte, into []string) (texts []string, rest []byte, err error) {
	n, b, err := take(b)
	if err != nil || n > uint64(len(b)) { // each text has a byte at least
		return nil, nil, errShort
	}
	for range n {
		var text []byte
		if text, b, err = takeBytes(b); err != nil {
			return nil, nil, err
		}
		into = append(into, string(text))
	}
	return into, b, nil
}

// parse reads the texts, and which sections there are.
func (r *Recorded) parse(b []byte) (err error) {
	if r.texts, b, err = takeTexts(b, r.texts); err != nil {
		return err
	}
	for len(b) > 0 {
		var n uint64
		var body []byte
		if n, b, err = take(b); err != nil {
			return err
		}
		if body, b, err = takeBytes(b); err != nil {
			return err
		}
		t := tag(n)
		if t.point().String() == "" || t>>pointBits >= tag(len(r.host.Sources)) || r.sections[t] != nil {
			return fmt.Errorf("there is no plugin %d at point %d, or it is there twice", n>>pointBits, t.point())
		}
		s := &reader{of: r, tag: t, rest: body}
		if err := s.begin(); err != nil {
			return fmt.Errorf("%w: %w", r.fail(t, "the answers cannot be read"), err)
		}
		r.sections[t] = s
		r.order = append(r.order, t)
	}
	return nil
}

// reader reads a section.
type reader struct {
	of   *Recorded
	tag  tag
	rest []byte
	err  error
	// bits are left of a section of bits, bit is the next one in rest.
	bits uint64
	bit  uint
	// Of atFilter.
	outcomes []outcome
	last     uint64
	run      uint64
}

// outcome is what a Filter says of a node, besides that the pod fits.
type outcome struct {
	flags   byte
	reasons []string
}

func (s *reader) ended() bool { return s.err != nil || len(s.rest) == 0 && s.bits == 0 && s.run == 0 }

// begin reads what a section begins with.
func (s *reader) begin() (err error) {
	switch s.tag.point() {
	case atQueueSort, atHint, atPreScore:
		if s.bits, s.rest, err = take(s.rest); err != nil {
			return err
		}
		if have := uint64(len(s.rest)); s.bits > 8*have || s.bits+7 < 8*have {
			return fmt.Errorf("%d answers in %d bytes", s.bits, have)
		}
	case atFilter:
		n := s.number()
		if n > uint64(len(s.rest)) {
			return errShort
		}
		for range n {
			if s.err == nil {
				s.outcomes = append(s.outcomes, outcome{s.byte(), s.list()})
			}
		}
		return s.err
	}
	return nil
}

// at returns what reads the answers of a source at a point. The error is that of the Recorded, too.
func (r *Recorded) at(source int, at point) (*reader, error) {
	t := tagOf(source, at)
	if !r.on {
		return nil, fmt.Errorf("a replay knows the answers of plugins of kube-scheduler's framework only to what was " +
			"asked in the recording")
	}
	s := r.sections[t]
	if s == nil || s.err == nil && s.ended() {
		return nil, r.fail(t, "the recording has no answer here")
	}
	return s, s.err
}

// broken ends a section whose bytes make no sense.
func (s *reader) broken(what string) {
	if s.err == nil {
		s.err = s.of.fail(s.tag, "the answer does not fit: "+what)
	}
	s.rest, s.bits, s.run = nil, 0, 0
}

func (s *reader) number() uint64 {
	n, rest, err := take(s.rest)
	if err != nil {
		s.broken(err.Error())
		return 0
	}
	s.rest = rest
	return n
}

func (s *reader) signed() int64 {
	n := s.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (s *reader) byte() byte {
	if len(s.rest) == 0 {
		s.broken(errShort.Error())
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *reader) text() string { return s.textAt(s.number()) }

func (s *reader) textAt(i uint64) string {
	if i >= uint64(len(s.of.texts)) {
		s.broken(fmt.Sprintf("text %d of %d", i, len(s.of.texts)))
		return ""
	}
	return s.of.texts[i]
}

// list reads a number of texts and the texts.
func (s *reader) list() []string {
	n := s.number()
	if n > uint64(len(s.rest)) {
		s.broken(errShort.Error())
		return nil
	}
	var list []string
	for range n {
		if s.err == nil {
			list = append(list, s.text())
		}
	}
	return list
}

// error reads an error, which may be nil.
func (s *reader) error() error {
	n := s.number()
	if n == 0 || s.err != nil {
		return s.err
	}
	return errors.New(s.textAt(n - 1))
}

// yes reports whether the next answer of one bit is yes.
func (s *reader) yes() bool {
	if s.bits == 0 {
		s.broken(errShort.Error())
		return false
	}
	is := s.rest[0]>>s.bit&1 != 0
	s.bits--
	if s.bit++; s.bit == 8 || s.bits == 0 {
		s.rest, s.bit = s.rest[1:], 0
	}
	return is
}

// verdict reads the outcome for one node, nil if the pod fits.
func (s *reader) verdict() (index uint64, o *outcome) {
	if s.run == 0 {
		n := s.number()
		s.last, s.run = n>>1, 1
		if n&1 != 0 {
			more := s.number()
			if more > 1<<32 {
				s.broken("a run of more nodes than there can be")
				return 0, nil
			}
			s.run = more + 2
		}
	}
	if s.err != nil {
		return 0, nil
	}
	s.run--
	switch {
	case s.last == 0:
		return 0, nil
	case s.last > uint64(len(s.outcomes)):
		s.broken(fmt.Sprintf("outcome %d of %d", s.last, len(s.outcomes)))
		return 0, nil
	}
	return s.last, &s.outcomes[s.last-1]
}

// scores reads the scores of the nodes that fit.
func (s *reader) scores(out, before []int64) {
	form := s.byte()
	read := func() int64 {
		if form&formSigned != 0 {
			return s.signed()
		}
		return int64(s.number())
	}
	switch form &^ formSigned {
	case formSame:
		if len(before) != len(out) {
			s.broken("no scores to repeat")
			return
		}
		copy(out, before)
	case formSingle:
		for i := range out {
			if s.err == nil {
				out[i] = read()
			}
		}
	case formRuns:
		for i := 0; i < len(out) && s.err == nil; {
			v, more := read(), s.number()
			if s.err == nil && more >= uint64(len(out)-i) {
				s.broken(fmt.Sprintf("more scores than the %d nodes that fit", len(out)))
				return
			}
			for range more + 1 {
				out[i] = v
				i++
			}
		}
	default:
		s.broken("an unknown form of scores")
	}
}
