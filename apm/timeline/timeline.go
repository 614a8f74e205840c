// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxSpans bounds the spans of a timeline. What exceeds it is counted in Dropped.
const MaxSpans = 4 << 20

// NameID is the index of a name in Timeline.Names; NoName is the empty name.
type NameID int32

// NoName is the name of what has none.
const NoName NameID = 0

// Span is an interval on a track.
type Span struct {
	Name NameID
	// At is a second name: the function in which a goroutine stopped; NoName without one.
	At NameID
	// From and To are nanoseconds since the Unix epoch. Invariant: From <= To.
	From, To int64
	// Depth is 0 for a span that is in no other, 1 for one within that.
	Depth uint8
}

// Track is a row of spans.
type Track struct {
	// Group is the name of the group of tracks to which the track belongs: a lane, or pods.
	Group string
	Name  string
	// Spans are in the order of their begins; an outer span comes before those within it.
	Spans []Span
}

// Timeline is what a program did over time.
type Timeline struct {
	// Program is the name of the process, Instance the one that was recorded.
	Program, Instance string
	Began             time.Time
	// Names are the names of spans, by NameID. Names[0] is empty.
	Names  []string
	Tracks []Track
	// Dropped is the number of spans that exceeded a limit.
	Dropped int
	ids     map[string]NameID // name -> its index in Names
	spans   int
}

// New returns an empty timeline.
func New(program, instance string, began time.Time) *Timeline {
	return &Timeline{Program: program, Instance: instance, Began: began, Names: []string{""},
		ids: map[string]NameID{"": NoName}}
}

// Name returns the number of a name.
func (t *Timeline) Name(text string) NameID {
	id, known := t.ids[text]
	if !known {
		id = NameID(len(t.Names))
		t.Names = append(t.Names, text)
		t.ids[text] = id
	}
	return id
}

// Len returns the number of spans.
func (t *Timeline) Len() int { return t.spans }

// Item is a piece of work with the spans within it: a goroutine, or a pod.
type Item struct {
	Span
	// Inner are the spans within it, in the order of their begins. Invariant: they do not overlap.
	Inner []Span
}

// end is the end of the last item of a track.
type end struct {
	to    int64
	track int
}

// ends is a heap of ends, the earliest first.
type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].to < e[j].to || e[i].to == e[j].to && e[i].track < e[j].track
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }

// Pop is never called: a track stays.
func (e *ends) Pop() any { panic("a track was removed") }

// Pack adds the items of a group on as few tracks as their overlaps allow, at most a number. Items that would need more
// tracks, or exceed MaxSpans, are dropped and counted.
func (t *Timeline) Pack(group string, items []Item, most int) {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To))
	})
	first := len(t.Tracks)
	var free ends
	for _, i := range items {
		if t.spans+1+len(i.Inner) > MaxSpans {
			t.Dropped += 1 + len(i.Inner)
			continue
		}
		at := len(t.Tracks)
		switch {
		case len(free) > 0 && free[0].to <= i.From:
			at = free[0].track
			free[0].to = i.To
			heap.Fix(&free, 0)
		case at-first >= most:
			t.Dropped += 1 + len(i.Inner)
			continue
		default:
			t.Tracks = append(t.Tracks, Track{Group: group, Name: fmt.Sprintf("%s %d", group, at-first+1)})
			heap.Push(&free, end{i.To, at})
		}
		track := &t.Tracks[at]
		track.Spans = append(track.Spans, i.Span)
		for _, inner := range i.Inner {
			inner.Depth = 1
			track.Spans = append(track.Spans, inner)
		}
		t.spans += 1 + len(i.Inner)
	}
}

// maxName bounds the bytes of a name that is written.
const maxName = 1 << 10

// clean returns a name without what is not printable: control characters, which can change what a terminal or a page
// shows, characters that change the direction of text, and bytes that are not UTF-8.
func clean(name string) string {
	cut := len(name) > maxName
	if cut {
		name = name[:maxName]
	}
	if !cut && utf8.ValidString(name) && strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if r == utf8.RuneError && name[i] != "\uFFFD"[0] {
			b.WriteRune(utf8.RuneError)
			continue
		}
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	if cut {
		b.WriteString("…")
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
