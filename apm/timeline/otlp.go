// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
)

// scope is the name of the instrumentation in OTLP.
const scope = "github.com/kumiki-scheduler/kumiki/apm"

// otlp writes spans. The text is built by hand, since a timeline can have millions of spans; strings are encoded by
// encoding/json.
type otlp struct {
	to    *bufio.Writer
	err   error
	names []string // NameID -> JSON string
	trace [16]byte
	spans uint64
	// top is the number of the span that the following inner ones are children of.
	top uint64
}

// WriteOTLP writes the timeline as traces of OpenTelemetry, one TracesData message in OTLP's JSON encoding
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Each span that is in no other is the root of a
// trace. Identifiers follow from the position in the timeline, so the same timeline gives the same file.
func (t *Timeline) WriteOTLP(w io.Writer) error {
	o := &otlp{to: bufio.NewWriterSize(w, 1<<20), names: make([]string, len(t.Names))}
	for i, name := range t.Names {
		o.names[i] = quoted(name)
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s\x00%s\x00%d", t.Program, t.Instance, t.Began.UnixNano())
	binary.BigEndian.PutUint64(o.trace[:8], sum.Sum64()|1) // an identifier of zeros is not valid
	o.write(`{"resourceSpans":[{"resource":{"attributes":[`,
		attribute("service.name", quoted(t.Program)), ",", attribute("service.instance.id", quoted(t.Instance)),
		`]},"scopeSpans":[{"scope":{"name":`, quoted(scope), `},"spans":[`)
	for i := range t.Tracks {
		lane, track := quoted(t.Tracks[i].Group), quoted(t.Tracks[i].Name)
		for j := range t.Tracks[i].Spans {
			o.span(&t.Tracks[i].Spans[j], lane, track)
		}
	}
	o.write("]}]}]}\n")
	if o.err == nil {
		o.err = o.to.Flush()
	}
	if o.err != nil {
		return fmt.Errorf("writing traces for OpenTelemetry: %w", o.err)
	}
	return nil
}

// span writes one span. Attributes are on outer spans, except at.
func (o *otlp) span(s *Span, lane, track string) {
	if o.spans > 0 {
		o.write(",")
	}
	o.spans++
	if s.Depth == 0 {
		o.top = o.spans
		binary.BigEndian.PutUint64(o.trace[8:], o.spans)
	}
	o.write("\n", `{"traceId":"`, hex.EncodeToString(o.trace[:]), `","spanId":"`, spanID(o.spans))
	if s.Depth > 0 {
		o.write(`","parentSpanId":"`, spanID(o.top))
	}
	name := o.names[s.Name]
	if s.Name == NoName {
		name = `"-"`
	}
	o.write(`","name":`, name, `,"kind":1,"startTimeUnixNano":"`, strconv.FormatInt(s.From, 10),
		`","endTimeUnixNano":"`, strconv.FormatInt(s.To, 10), `"`)
	switch {
	case s.Depth == 0:
		o.write(`,"attributes":[`, attribute("kumiki.lane", lane), ",", attribute("kumiki.track", track), "]")
	case s.At != NoName:
		o.write(`,"attributes":[`, attribute("code.function.name", o.names[s.At]), "]")
	}
	o.write("}")
}

func (o *otlp) write(texts ...string) {
	for _, text := range texts {
		if o.err == nil {
			_, o.err = o.to.WriteString(text)
		}
	}
}

// spanID returns a number as the identifier of a span.
func spanID(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return hex.EncodeToString(b[:])
}

// attribute returns an attribute with a string, of which value is the JSON.
func attribute(key, value string) string {
	return `{"key":"` + key + `","value":{"stringValue":` + value + `}}`
}

// quoted returns a name as a JSON string.
func quoted(name string) string {
	text, err := json.Marshal(clean(name))
	if err != nil { // of a string there is none
		panic(fmt.Sprintf("encoding the name %q: %v", name, err))
	}
	return string(text)
}
