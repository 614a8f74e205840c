// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"
)

// hostile are names that end a string, change a terminal or the direction of text, or are not UTF-8.
var hostile = []string{`a"}],"x":[{"`, "a\x1b[2J\x00b", "a\u202egpj.exe", "a\xff\xfeb", "a\nb", strings.Repeat("é", 2000)}

// sample is a timeline of two lanes: a goroutine with two states, one that overlaps it, one after both, and a pod with a
// hostile name.
func sample(pod string) *Timeline {
	t := New("kube-scheduler", "node-1_x", time.Unix(7, 0))
	run, wait, at := t.Name("running"), t.Name("waiting: chan"), t.Name("main.receive")
	t.Pack("binding", []Item{
		{Span: Span{Name: t.Name("main.c"), From: 210, To: 220}},
		{Span: Span{Name: t.Name("main.a"), From: 100, To: 200}, Inner: []Span{{Name: run, From: 100, To: 140},
			{Name: wait, At: at, From: 140, To: 200}}},
		{Span: Span{Name: t.Name("main.b"), From: 150, To: 215}, Inner: []Span{{Name: run, From: 150, To: 150}}},
	}, 10)
	t.Pack("pods", []Item{{Span: Span{Name: t.Name(pod), From: 90, To: 300}}}, 10)
	return t
}

// decoded is what a reader of Perfetto's format gets: for each track its path, and its events as text.
type decoded struct {
	tracks []string
	events map[string][]string // path of a track -> begin NAME[@AT] TIME, end TIME
}

// decode decodes a trace with the descriptor of perfetto.proto. A field that the file does not have is an error.
func decode(t *testing.T, data []byte) decoded {
	t.Helper()
	d := traceDescriptor(t)
	m := dynamicpb.NewMessage(d)
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	out := decoded{events: map[string][]string{}}
	paths := map[uint64]string{}                              // track -> path
	names, values := map[uint64]string{}, map[uint64]string{} // interned
	cleared := false                                          // a packet has cleared the state
	field := func(m protoreflect.Message, name string) protoreflect.Value {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil {
			t.Fatalf("%s has no field %s", m.Descriptor().Name(), name)
		}
		return m.Get(f)
	}
	has := func(m protoreflect.Message, name string) bool {
		return m.Has(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
	}
	packets := field(m, "packet").List()
	for i := range packets.Len() {
		p := packets.Get(i).Message()
		walkUnknown(t, p)
		if field(p, "trusted_packet_sequence_id").Uint() != 1 {
			t.Errorf("packet %d belongs to another sequence", i)
		}
		cleared = cleared || field(p, "sequence_flags").Uint()&1 != 0
		inner := field(p, "interned_data").Message()
		for _, one := range []struct {
			field string
			into  map[uint64]string
			text  string
		}{{"event_names", names, "name"}, {"debug_annotation_string_values", values, "str"}} {
			list := field(inner, one.field).List()
			for j := range list.Len() {
				e := list.Get(j).Message()
				one.into[field(e, "iid").Uint()] = field(e, one.text).String()
				if one.text == "str" {
					one.into[field(e, "iid").Uint()] = string(field(e, one.text).Bytes())
				}
			}
		}
		if has(p, "track_descriptor") {
			td := field(p, "track_descriptor").Message()
			path := field(td, "name").String()
			if parent := field(td, "parent_uuid").Uint(); parent != 0 {
				path = paths[parent] + "/" + path
			}
			paths[field(td, "uuid").Uint()] = path
			out.tracks = append(out.tracks, path)
		}
		if !has(p, "track_event") {
			continue
		}
		e := field(p, "track_event").Message()
		track, at := paths[field(e, "track_uuid").Uint()], field(p, "timestamp").Uint()
		if track == "" || !cleared {
			t.Errorf("packet %d has an event of a track that is not described, or before the state is cleared", i)
		}
		if field(e, "type").Enum() == 2 {
			out.events[track] = append(out.events[track], fmt.Sprintf("end %d", at))
			continue
		}
		name := names[field(e, "name_iid").Uint()]
		if list := field(e, "debug_annotations").List(); list.Len() > 0 {
			name += "@" + values[field(list.Get(0).Message(), "string_value_iid").Uint()]
		}
		if field(p, "sequence_flags").Uint() != 2 || name == "" {
			t.Errorf("packet %d: event %q without its interned name", i, name)
		}
		out.events[track] = append(out.events[track], fmt.Sprintf("begin %s %d", name, at))
	}
	return out
}

// walkUnknown fails if a message has fields that the descriptor does not.
func walkUnknown(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if len(m.GetUnknown()) > 0 {
		t.Errorf("%s has fields that perfetto.proto does not have", m.Descriptor().Name())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				walkUnknown(t, v.List().Get(i).Message())
			}
		case f.Message() != nil:
			walkUnknown(t, v.Message())
		}
		return true
	})
}

func written(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPerfettoReadsTheTimeline: tracks below their groups, overlapping items on different tracks, inner spans within
// outer ones, and names.
func TestPerfettoReadsTheTimeline(t *testing.T) {
	got := decode(t, written(t, sample("default/p-1").WritePerfetto))
	const root = "kube-scheduler node-1_x"
	if want := []string{root, root + "/binding", root + "/binding/binding 1", root + "/binding/binding 2", root + "/pods",
		root + "/pods/pods 1"}; !slices.Equal(got.tracks, want) {
		t.Errorf("tracks %q, want %q", got.tracks, want)
	}
	for track, want := range map[string][]string{
		"/binding/binding 1": {"begin main.a 100", "begin running 100", "end 140", "begin waiting: chan@main.receive 140",
			"end 200", "end 200", "begin main.c 210", "end 220"},
		"/binding/binding 2": {"begin main.b 150", "begin running 150", "end 150", "end 215"},
		"/pods/pods 1":       {"begin default/p-1 90", "end 300"},
	} {
		if !slices.Equal(got.events[root+track], want) {
			t.Errorf("%s: %q, want %q", track, got.events[root+track], want)
		}
	}
}

// TestOTLPReadsTheTimeline: by the protocol's own types, which know each field.
func TestOTLPReadsTheTimeline(t *testing.T) {
	data := written(t, sample("default/p-1").WriteOTLP)
	var m tracepb.TracesData
	if err := protojson.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	resource := m.ResourceSpans[0]
	if a := resource.Resource.Attributes; len(a) != 2 || a[0].Key != "service.name" ||
		a[0].Value.GetStringValue() != "kube-scheduler" || a[1].Value.GetStringValue() != "node-1_x" {
		t.Errorf("the resource is %v", a)
	}
	// OTLP writes identifiers in hexadecimal digits, where other JSON of protobuf has base64.
	hex := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	var got []string
	traces, roots := map[string]string{}, map[string]string{} // trace -> name and identifier of its root
	ids := map[string]bool{}
	for _, s := range resource.ScopeSpans[0].Spans {
		trace, id := hex(s.TraceId), hex(s.SpanId)
		if len(trace) != 32 || len(id) != 16 || ids[id] || strings.Trim(id, "0") == "" || strings.Trim(trace, "0") == "" {
			t.Errorf("span %s has the identifiers %q and %q", s.Name, trace, id)
		}
		ids[id] = true
		parent := "-"
		if len(s.ParentSpanId) == 0 {
			traces[trace], roots[trace] = s.Name, id
		} else if parent = traces[trace]; roots[trace] != hex(s.ParentSpanId) {
			t.Errorf("span %s has a parent of another trace", s.Name)
		}
		got = append(got, fmt.Sprintf("%s in %s: %d to %d", s.Name, parent, s.StartTimeUnixNano, s.EndTimeUnixNano))
	}
	want := []string{"main.a in -: 100 to 200", "running in main.a: 100 to 140", "waiting: chan in main.a: 140 to 200",
		"main.c in -: 210 to 220", "main.b in -: 150 to 215", "running in main.b: 150 to 150",
		"default/p-1 in -: 90 to 300"}
	if !slices.Equal(got, want) {
		t.Errorf("spans %q, want %q", got, want)
	}
	if string(data) != string(written(t, sample("default/p-1").WriteOTLP)) {
		t.Error("the same timeline gives two different files")
	}
}

// TestHostileNamesAreEscaped: whatever a pod is called, both formats stay whole, and no name can hide or reorder text.
func TestHostileNamesAreEscaped(t *testing.T) {
	for _, name := range hostile {
		tl := sample(name)
		got := decode(t, written(t, tl.WritePerfetto))
		var m tracepb.TracesData
		if err := protojson.Unmarshal(written(t, tl.WriteOTLP), &m); err != nil {
			t.Errorf("%.30q: %v", name, err)
			continue
		}
		spans := m.ResourceSpans[0].ScopeSpans[0].Spans
		for _, shown := range []string{got.events["kube-scheduler node-1_x/pods/pods 1"][0], spans[len(spans)-1].Name} {
			if strings.ContainsFunc(shown, unprintable) || !utf8.ValidString(shown) || len(shown) > maxName+50 {
				t.Errorf("%.30q is written as %.60q", name, shown)
			}
		}
	}
	for name, want := range map[string]string{"a/b-1": "a/b-1", "é\uFFFD": "é\uFFFD", "a\xffb": "a\uFFFDb", "\x1b[1m": `\u001b[1m`} {
		if got := clean(name); got != want {
			t.Errorf("clean(%q) is %q, want %q", name, got, want)
		}
	}
}

// TestPackedItemsDoNotOverlap: items of one track do not overlap, all are there, and there are as many tracks as items
// overlap at most.
func TestPackedItemsDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []Item
		for range rapid.IntRange(0, 40).Draw(t, "items") {
			from := rapid.Int64Range(0, 50).Draw(t, "from")
			items = append(items, Item{Span: Span{From: from, To: from + rapid.Int64Range(1, 20).Draw(t, "took")}})
		}
		most := 0
		for _, i := range items {
			at := 0
			for _, o := range items {
				if o.From <= i.From && i.From < o.To {
					at++
				}
			}
			most = max(most, at)
		}
		tl := New("p", "i", time.Unix(0, 0))
		tl.Pack("g", slices.Clone(items), 1000)
		n := 0
		for _, track := range tl.Tracks {
			for i, s := range track.Spans {
				if n++; i > 0 && s.From < track.Spans[i-1].To {
					t.Fatalf("%s: %v overlaps %v", track.Name, s, track.Spans[i-1])
				}
			}
		}
		if n != len(items) || len(tl.Tracks) != most || tl.Dropped != 0 || tl.Len() != n {
			t.Fatalf("%d of %d items on %d tracks, want %d tracks", n, len(items), len(tl.Tracks), most)
		}
		limited := New("p", "i", time.Unix(0, 0))
		limited.Pack("g", items, 2)
		if len(limited.Tracks) > 2 || limited.Dropped+limited.Len() != len(items) {
			t.Fatalf("with a limit of 2 there are %d tracks, %d items and %d dropped ones", len(limited.Tracks),
				limited.Len(), limited.Dropped)
		}
	})
}

// fails accepts some bytes and then fails.
type fails struct{ left int }

func (f *fails) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// TestAFullDiskIsAnError: with both formats, wherever it happens.
func TestAFullDiskIsAnError(t *testing.T) {
	tl := sample("p")
	for _, write := range []func(io.Writer) error{tl.WritePerfetto, tl.WriteOTLP} {
		size := len(written(t, write))
		for _, n := range []int{0, size / 2, size - 1} {
			if err := write(&fails{n}); err == nil || !strings.Contains(err.Error(), "disk full") {
				t.Errorf("after %d bytes: %v", n, err)
			}
		}
	}
}

// million is a timeline of a million spans: goroutines with four states each.
func million() *Timeline {
	t := New("kube-scheduler", "node-1_x", time.Unix(7, 0))
	states := []NameID{t.Name("running"), t.Name("runnable"), t.Name("waiting: chan"), t.Name("system call")}
	at := t.Name("internal/poll.runtime_pollWait")
	var items []Item
	for i := range 200_000 {
		from := time.Unix(8, int64(i)*5000).UnixNano()
		one := Item{Span: Span{Name: t.Name(fmt.Sprintf("main.f%d", i%100)), From: from, To: from + 40_000}}
		for j, s := range states {
			one.Inner = append(one.Inner, Span{Name: s, At: at, From: from + int64(j)*10_000, To: from + int64(j+1)*10_000})
		}
		items = append(items, one)
	}
	t.Pack("binding", items, 1000)
	return t
}

func BenchmarkPerfettoMillionSpans(b *testing.B) { benchmark(b, (*Timeline).WritePerfetto) }

func BenchmarkOTLPMillionSpans(b *testing.B) { benchmark(b, (*Timeline).WriteOTLP) }

func benchmark(b *testing.B, write func(*Timeline, io.Writer) error) {
	t := million()
	if t.Len() != 1_000_000 {
		b.Fatalf("%d spans", t.Len())
	}
	b.ResetTimer()
	for b.Loop() {
		var n counted
		if err := write(t, &n); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(n))
	}
}

// counted counts what is written.
type counted int64

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}
