// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// lane is a component in a sequence, or the gang or the victims of evictions beside them.
type lane int

const (
	watchLane lane = iota
	queueLane
	loopLane
	clientLane
	serverLane
	gangLane
	victimLane
	lanes
)

var laneNames = [lanes]string{"watch", "queue", "loop", "client", "API server", "gang", "victims"}

// laneOf: phase -> the component in which the pod is.
var laneOf = [record.Phases]lane{
	record.PhaseInbox: watchLane, record.PhaseGated: queueLane, record.PhaseUnschedulable: queueLane,
	record.PhaseBackoff: queueLane, record.PhaseActive: queueLane, record.PhaseDeciding: loopLane,
	record.PhasePreparing: clientLane, record.PhaseBindQueued: clientLane, record.PhaseLimited: clientLane,
	record.PhaseSent: serverLane, record.PhaseAnswered: clientLane, record.PhaseConfirming: watchLane,
}

// bar is a phase in a drawing.
type bar struct {
	lane   lane
	start  record.Time
	took   record.Time
	open   bool // it has not ended
	text   string
	colour string
}

// bars returns what is drawn, in the order of its beginning: the phases of the pod, of its gang, and of evictions.
func (r *Report) bars() []bar {
	var list []bar
	for i, s := range r.Spans {
		open := r.Ended == 0 && i == len(r.Spans)-1
		list = append(list, bar{laneOf[s.Phase], s.Start, s.Took, open, what(s, open), colours[s.Phase]})
	}
	add := func(lane lane, prefix string, spans []record.MilestoneSpan, colour string) {
		for _, s := range spans {
			text := prefix + s.Phase + " " + lasts(s.Took, s.Open)
			list = append(list, bar{lane, s.Start, s.Took, s.Open, text, colour})
		}
	}
	add(gangLane, "gang ", r.GangPhases, "#9ecae1")
	for i := range r.Evictions {
		e := &r.Evictions[i]
		add(victimLane, fmt.Sprintf("eviction %d: ", e.Decision), e.Phases, "#fb9a99")
	}
	slices.SortStableFunc(list, func(a, b bar) int { return cmp.Compare(a.start, b.start) })
	return list
}

// lanesOf returns which lanes are drawn: those of a pod, and others that have bars.
func lanesOf(bars []bar) (drawn []lane) {
	for l := range lanes {
		if l <= serverLane || slices.ContainsFunc(bars, func(b bar) bool { return b.lane == l }) {
			drawn = append(drawn, l)
		}
	}
	return drawn
}

func lasts(took record.Time, open bool) string {
	if open {
		return "until now"
	}
	return time.Duration(took).String()
}

// what words a phase and what ended it.
func what(s record.PhaseSpan, open bool) string {
	text := s.Phase.String() + " " + lasts(s.Took, open)
	if len(s.Plugins) > 0 {
		text += " (" + strings.Join(s.Plugins, ", ") + ")"
	}
	if s.Event != "" {
		text += ", ended by " + s.Event
	}
	if s.Hint != "" {
		text += " (" + s.Hint + ")"
	}
	return text
}

// WriteMermaid writes the journey as a sequence diagram of Mermaid; time runs downwards, not to scale.
func (r *Report) WriteMermaid(w io.Writer) error {
	var b strings.Builder
	bars := r.bars()
	fmt.Fprintf(&b, "sequenceDiagram\n    accTitle: %s\n", mermaid("pod "+r.Pod.Key()))
	for _, l := range lanesOf(bars) {
		fmt.Fprintf(&b, "    participant %c as %s\n", 'A'+int(l), laneNames[l])
	}
	fmt.Fprintf(&b, "    Note over A: %s\n", mermaid("observed "+clock(r.Began)))
	at := watchLane
	for _, s := range bars {
		if s.lane != at && s.lane <= serverLane {
			fmt.Fprintf(&b, "    %c->>%c: +%s\n", 'A'+int(at), 'A'+int(s.lane), time.Duration(s.start-r.Began))
			at = s.lane
		}
		fmt.Fprintf(&b, "    Note over %c: %s\n", 'A'+int(s.lane), mermaid(s.text))
	}
	if r.Ended != 0 {
		fmt.Fprintf(&b, "    Note over A: %s\n", mermaid(fmt.Sprintf("%s after %s", r.End, time.Duration(r.Total()))))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// clock writes a moment with its date.
func clock(t record.Time) string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000000 UTC")
}

// mermaid writes a text so that no character of it has a meaning in a diagram.
func mermaid(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(" .,/()-+_:µ", c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "#%d;", c)
		}
	}
	return b.String()
}

// Sizes of the drawing, in pixels. A label needs its own line, so labels of short phases stand below their bars.
const (
	laneWidth, laneGap = 90, 10
	top, lineHeight    = 60, 16
	timeWidth          = 110
	labelWidth         = 620
)

// WriteSVG draws the journey: a column for each component, wall time running downwards to scale, and a line of text for
// each phase. It contains no script and refers to nothing.
func (r *Report) WriteSVG(w io.Writer) error {
	bars := r.bars()
	drawn := lanesOf(bars)
	begin, end := r.Began, r.Ended
	for _, s := range bars {
		begin, end = min(begin, s.start), max(end, s.start+s.took)
	}
	height := max(400, len(bars)*lineHeight)
	scale := 0.0
	if end > begin {
		scale = float64(height) / float64(end-begin)
	}
	y := func(t record.Time) float64 { return top + scale*float64(t-begin) }
	left := func(of lane) int { return timeWidth + slices.Index(drawn, of)*(laneWidth+laneGap) }
	text := timeWidth + len(drawn)*(laneWidth+laneGap) + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		`font-size="12">`+"\n", text+labelWidth, top+height+2*lineHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		svgText("pod "+r.Pod.Key()))
	fmt.Fprintf(&b, "<text x=\"4\" y=\"18\" font-weight=\"bold\">%s</text>\n", svgText(r.headline()))
	for _, l := range drawn {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", left(l), top-10, laneNames[l])
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>\n", left(l)+laneWidth/2, top,
			left(l)+laneWidth/2, top+height)
	}
	for i, s := range bars {
		from, to := y(s.start), y(s.start+s.took)
		if s.open {
			to = top + float64(height)
		}
		at := top + float64(i)*float64(height)/float64(len(bars)) + lineHeight - 4
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\"/>\n", left(s.lane), from,
			laneWidth, max(to-from, 1), s.colour)
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"#999\"/>\n", left(s.lane)+laneWidth,
			from, text-4, at-4)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.2f\">%s</text>\n", text, at, svgText(s.text))
		fmt.Fprintf(&b, "<text x=\"4\" y=\"%.2f\" fill=\"#555\">%s</text>\n", at, relative(s.start-r.Began))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// relative writes a time relative to the first observation of the pod; a gang may be older.
func relative(t record.Time) string {
	if t < 0 {
		return time.Duration(t).String()
	}
	return "+" + time.Duration(t).String()
}

// headline states the pod, when it was observed and how its journey ended.
func (r *Report) headline() string {
	text := "pod " + r.Pod.Key() + ", observed " + clock(r.Began)
	if r.Ended != 0 {
		text += fmt.Sprintf(", %s after %s", r.End, time.Duration(r.Total()))
	}
	return text + "; wall time downwards"
}

// colours: phase -> colour of its bars.
var colours = [record.Phases]string{"#8da0cb", "#bbbbbb", "#fc8d62", "#e5c494", "#ffd92f", "#66c2a5", "#a6d854",
	"#d0a5d8", "#e78ac3", "#e7298a", "#1b9e77", "#7570b3"}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// svgText escapes a text for an element. Characters that XML does not have are replaced.
func svgText(text string) string {
	return xmlEscapes.Replace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0xFFFE || c == 0xFFFF {
			return 0xFFFD
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
