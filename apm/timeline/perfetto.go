// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields, as in perfetto.proto.
const (
	tracePacket = 1

	packetTimestamp  = 8
	packetSequence   = 10
	packetEvent      = 11
	packetInterned   = 12
	packetFlags      = 13
	packetDescriptor = 60

	descriptorUUID     = 1
	descriptorName     = 2
	descriptorProcess  = 3
	descriptorParent   = 5
	descriptorOrdering = 11
	descriptorRank     = 12

	processPID  = 1
	processName = 6

	eventAnnotations = 4
	eventType        = 9
	eventNameID      = 10
	eventTrack       = 11

	annotationNameID  = 1
	annotationValueID = 17

	internedEventNames       = 2
	internedAnnotationNames  = 3
	internedAnnotationValues = 29

	internedID   = 1
	internedName = 2
)

// Values of enumerations in perfetto.proto.
const (
	sliceBegin, sliceEnd            = 1, 2
	explicitOrder                   = 3
	stateCleared, needsState uint64 = 1, 2
)

// sequence is the number of the only sequence of packets. atID is the interned name of the annotation at.
const (
	sequence = 1
	atID     = 1
)

// perfetto writes packets. The buffers are reused; a nested message is encoded before the one around it, since its
// length comes first.
type perfetto struct {
	to                    *bufio.Writer
	packet, event, nested []byte
	err                   error
	defined               []bool // NameID -> the event name was written
	values                []bool // NameID -> the value of an annotation was written
	names                 *Timeline
}

// WritePerfetto writes the timeline as a trace that Perfetto (https://ui.perfetto.dev) opens. Each group of tracks is a
// track with the group's tracks below it, in their order.
func (t *Timeline) WritePerfetto(w io.Writer) error {
	p := &perfetto{to: bufio.NewWriterSize(w, 1<<20), defined: make([]bool, len(t.Names)),
		values: make([]bool, len(t.Names)), names: t}
	const process = 1
	p.begin(t)
	groups := map[string]uint64{} // group -> its track
	next := uint64(process + 1)
	for i := range t.Tracks {
		group := t.Tracks[i].Group
		if groups[group] == 0 {
			groups[group] = next
			p.describe(next, group, process, len(groups))
			next++
		}
		p.describe(next, t.Tracks[i].Name, groups[group], i)
		p.track(&t.Tracks[i], next)
		next++
	}
	if p.err == nil {
		p.err = p.to.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("writing a trace for Perfetto: %w", p.err)
	}
	return nil
}

// begin writes the process and the interned names that every trace has.
func (p *perfetto) begin(t *Timeline) {
	const process = 1
	name := clean(t.Program + " " + t.Instance)
	var d, pid []byte
	pid = varint(pid, processPID, 1)
	pid = text(pid, processName, name)
	d = varint(d, descriptorUUID, process)
	d = text(d, descriptorName, name)
	d = message(d, descriptorProcess, pid)
	d = varint(d, descriptorOrdering, explicitOrder)
	p.packet = message(p.packet[:0], packetDescriptor, d)
	p.packet = varint(p.packet, packetFlags, stateCleared)
	p.packet = message(p.packet, packetInterned, interned(nil, internedAnnotationNames, atID, "at"))
	p.put()
}

// describe writes the descriptor of a track.
func (p *perfetto) describe(id uint64, name string, parent uint64, rank int) {
	d := varint(nil, descriptorUUID, id)
	d = text(d, descriptorName, clean(name))
	d = varint(d, descriptorParent, parent)
	d = varint(d, descriptorOrdering, explicitOrder)
	d = varint(d, descriptorRank, uint64(rank))
	p.packet = message(p.packet[:0], packetDescriptor, d)
	p.put()
}

// track writes the spans of a track as begins and ends in the order of time.
func (p *perfetto) track(t *Track, id uint64) {
	var open []Span // from the outermost to the innermost
	for _, s := range t.Spans {
		for len(open) > int(s.Depth) {
			p.end(open[len(open)-1].To, id)
			open = open[:len(open)-1]
		}
		p.beginSpan(&s, id)
		open = append(open, s)
	}
	for len(open) > 0 {
		p.end(open[len(open)-1].To, id)
		open = open[:len(open)-1]
	}
}

func (p *perfetto) beginSpan(s *Span, track uint64) {
	e := p.event[:0]
	if s.At != NoName {
		n := varint(p.nested[:0], annotationNameID, atID)
		n = varint(n, annotationValueID, uint64(s.At))
		e = message(e, eventAnnotations, n)
		p.nested = n
	}
	e = varint(e, eventType, sliceBegin)
	if s.Name != NoName {
		e = varint(e, eventNameID, uint64(s.Name))
	}
	e = varint(e, eventTrack, track)
	p.event = e
	p.packet = varint(p.packet[:0], packetTimestamp, uint64(s.From))
	p.packet = message(p.packet, packetEvent, e)
	p.packet = varint(p.packet, packetFlags, needsState)
	p.define(s)
	p.put()
}

// define adds the names that no packet before had.
func (p *perfetto) define(s *Span) {
	var names []byte
	if s.Name != NoName && !p.defined[s.Name] {
		p.defined[s.Name] = true
		names = interned(names, internedEventNames, uint64(s.Name), clean(p.names.Names[s.Name]))
	}
	if s.At != NoName && !p.values[s.At] {
		p.values[s.At] = true
		names = interned(names, internedAnnotationValues, uint64(s.At), clean(p.names.Names[s.At]))
	}
	if names != nil {
		p.packet = message(p.packet, packetInterned, names)
	}
}

func (p *perfetto) end(at int64, track uint64) {
	e := varint(p.event[:0], eventType, sliceEnd)
	e = varint(e, eventTrack, track)
	p.event = e
	p.packet = varint(p.packet[:0], packetTimestamp, uint64(at))
	p.packet = message(p.packet, packetEvent, e)
	p.put()
}

// put writes the current packet, with the sequence.
func (p *perfetto) put() {
	p.packet = varint(p.packet, packetSequence, sequence)
	if p.err != nil {
		return
	}
	head := p.to.AvailableBuffer()
	head = protowire.AppendTag(head, tracePacket, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(p.packet)))
	if _, p.err = p.to.Write(head); p.err == nil {
		_, p.err = p.to.Write(p.packet)
	}
}

func varint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// interned appends an entry of interned_data.
func interned(b []byte, field protowire.Number, id uint64, name string) []byte {
	return message(b, field, text(varint(nil, internedID, id), internedName, name))
}
