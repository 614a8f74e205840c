// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// lane is a component in a sequence.
type lane int

const (
	watchLane lane = iota
	queueLane
	loopLane
	clientLane
	serverLane
	lanes
)

var laneNames = [lanes]string{"watch", "queue", "loop", "client", "API server"}

// laneOf: phase -> the component in which the pod is.
var laneOf = [record.Phases]lane{
	record.PhaseInbox: watchLane, record.PhaseGated: queueLane, record.PhaseUnschedulable: queueLane,
	record.PhaseBackoff: queueLane, record.PhaseActive: queueLane, record.PhaseDeciding: loopLane,
	record.PhasePreparing: clientLane, record.PhaseBindQueued: clientLane, record.PhaseLimited: clientLane,
	record.PhaseSent: serverLane, record.PhaseAnswered: clientLane, record.PhaseConfirming: watchLane,
}

// what words a phase and what ended it.
func what(s record.PhaseSpan, open bool) string {
	took := time.Duration(s.Took).String()
	if open {
		took = "until now"
	}
	text := s.Phase.String() + " " + took
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

// open reports whether a span is the last one of a pod on its way.
func (r *Report) open(i int) bool { return r.Ended == 0 && i == len(r.Spans)-1 }

// WriteMermaid writes the journey as a sequence diagram of Mermaid; time runs downwards, not to scale.
func (r *Report) WriteMermaid(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "sequenceDiagram\n    accTitle: %s\n", mermaid("pod "+r.Pod.Key()))
	for i, name := range laneNames {
		fmt.Fprintf(&b, "    participant %c as %s\n", 'A'+i, name)
	}
	fmt.Fprintf(&b, "    Note over A: %s\n", mermaid("observed "+clock(r.Began)))
	at := watchLane
	for i, s := range r.Spans {
		if next := laneOf[s.Phase]; next != at {
			fmt.Fprintf(&b, "    %c->>%c: +%s\n", 'A'+int(at), 'A'+int(next), time.Duration(s.Start-r.Began))
			at = next
		}
		fmt.Fprintf(&b, "    Note over %c: %s\n", 'A'+int(at), mermaid(what(s, r.open(i))))
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
	end := r.Ended
	if n := len(r.Spans); end == 0 && n > 0 {
		end = r.Spans[n-1].End()
	}
	height := max(400, len(r.Spans)*lineHeight)
	scale := 0.0
	if end > r.Began {
		scale = float64(height) / float64(end-r.Began)
	}
	y := func(t record.Time) float64 { return top + scale*float64(t-r.Began) }
	text := timeWidth + int(lanes)*(laneWidth+laneGap) + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		`font-size="12">`+"\n", text+labelWidth, top+height+2*lineHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		svgText("pod "+r.Pod.Key()))
	fmt.Fprintf(&b, "<text x=\"4\" y=\"18\" font-weight=\"bold\">%s</text>\n", svgText(r.headline()))
	for i, name := range laneNames {
		x := timeWidth + i*(laneWidth+laneGap)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, top-10, name)
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>\n", x+laneWidth/2, top,
			x+laneWidth/2, top+height)
	}
	for i, s := range r.Spans {
		from, to := y(s.Start), y(s.End())
		if r.open(i) {
			to = top + float64(height)
		}
		x := timeWidth + int(laneOf[s.Phase])*(laneWidth+laneGap)
		at := top + float64(i)*float64(height)/float64(len(r.Spans)) + lineHeight - 4
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\"/>\n", x, from, laneWidth,
			max(to-from, 1), colours[s.Phase])
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"#999\"/>\n", x+laneWidth, from,
			text-4, at-4)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.2f\">%s</text>\n", text, at, svgText(what(s, r.open(i))))
		fmt.Fprintf(&b, "<text x=\"4\" y=\"%.2f\" fill=\"#555\">+%s</text>\n", at, time.Duration(s.Start-r.Began))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
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
