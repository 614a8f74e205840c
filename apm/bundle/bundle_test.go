// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample returns a bundle with a trace, metrics, and a profile that was denied.
func sample(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	w.Manifest.Tool, w.Manifest.Scheduler = "kumiki test", "node-1_x"
	if err := w.Add(Part{Kind: Trace, Source: "/debug/pprof/trace"}, strings.NewReader("a trace")); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Part{Kind: MetricsBefore, Source: "/metrics"}, strings.NewReader("up 1\n")); err != nil {
		t.Fatal(err)
	}
	w.AddMissing(Part{Kind: CPU, Source: "/debug/pprof/profile"}, "the scheduler denies it")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// archive returns a zip archive with the given manifest and files, which NewWriter would not write.
func archive(t testing.TB, manifest any, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	put := func(name string, content []byte) {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if s, is := manifest.(string); is {
		text = []byte(s)
	}
	put(manifestName, text)
	for i := 0; i < len(files); i += 2 {
		put(files[i], []byte(files[i+1]))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads all parts of a bundle, and returns the first error.
func readAll(data []byte, l Limits) error {
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), l)
	if err != nil {
		return err
	}
	for _, p := range r.Manifest.Parts {
		content, err := r.Open(p.Kind)
		var missing *Missing
		if errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, content)
		if err != nil || n != p.Size {
			return fmt.Errorf("part %s was checked, and has %d bytes instead of %d: %v", p.Name, n, p.Size, err)
		}
		content.Close()
	}
	return nil
}

func TestPartsAreReadAsWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.kumiki")
	if err := os.WriteFile(name, sample(t), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := r.Open(Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil || string(text) != "a trace" {
		t.Errorf("the trace is %q (%v)", text, err)
	}
	if m := r.Manifest; m.Version != Version || m.Scheduler != "node-1_x" || len(m.Parts) != 3 {
		t.Errorf("manifest %+v", m)
	}
	for kind, why := range map[Kind]string{CPU: "the scheduler denies it", Allocs: "it was not recorded"} {
		_, err := r.Open(kind)
		var missing *Missing
		if !errors.As(err, &missing) || missing.Why != why {
			t.Errorf("%s: %v, want the reason %q", kind, err, why)
		}
	}
}

// TestWhatIsNotAWholeBundleIsRejected: each bad input gives its reason, and no content.
func TestWhatIsNotAWholeBundleIsRejected(t *testing.T) {
	good := sample(t)
	limits := DefaultLimits
	limits.Files, limits.Manifest, limits.Part, limits.Total = 8, 4<<10, 4<<20, 6<<20
	manifest := func(change func(*Manifest)) Manifest {
		m := Manifest{Format: format, Version: Version, Parts: []Part{{Kind: Trace, Name: "trace.out", Size: 7,
			SHA256: "21ad28a37b38cf2baa5cd2c3ad8d1d2c7a5c5d9bbdbd5b8f1c2a0d1e8a3a9c55"}}}
		change(&m)
		return m
	}
	part := func(p Part) func(*Manifest) { return func(m *Manifest) { m.Parts = append(m.Parts, p) } }
	zeros := strings.Repeat("\x00", 3<<20)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":          {nil, "not a bundle, or truncated"},
		"truncated":      {good[:len(good)-10], "not a bundle, or truncated"},
		"not a bundle":   {archive(t, `{"format": "other"}`), "not that of a kumiki bundle"},
		"no JSON":        {archive(t, `{`), "reading the manifest"},
		"later version":  {archive(t, manifest(func(m *Manifest) { m.Version = 2 })), "newer than this program"},
		"no version":     {archive(t, manifest(func(m *Manifest) { m.Version = 0 })), "does not exist"},
		"wrong digest":   {archive(t, manifest(func(*Manifest) {}), "trace.out", "a tracE"), "does not have the digest"},
		"shorter":        {archive(t, manifest(func(*Manifest) {}), "trace.out", "a"), "the size is not the 7 bytes"},
		"longer":         {archive(t, manifest(func(*Manifest) {}), "trace.out", "a trace, longer"), "the size is not"},
		"absent":         {archive(t, manifest(func(*Manifest) {})), "has no part trace.out"},
		"path upwards":   {archive(t, manifest(func(*Manifest) {}), "../../etc/cron.d/x", "x"), "not a plain file name"},
		"absolute path":  {archive(t, manifest(part(Part{Kind: CPU, Name: "/tmp/x"}))), "not a plain file name"},
		"escape code":    {archive(t, manifest(part(Part{Kind: CPU, Name: "a\x1b[2J"}))), "not a plain file name"},
		"manifest twice": {archive(t, manifest(func(*Manifest) {}), manifestName, "{}"), "two files have the name"},
		"manifest part":  {archive(t, manifest(part(Part{Kind: CPU, Name: manifestName}))), "not a plain file name"},
		"kind twice":     {archive(t, manifest(part(Part{Kind: Trace, Name: "b"}))), "two parts have the kind"},
		"name twice":     {archive(t, manifest(part(Part{Kind: CPU, Name: "trace.out"}))), "two parts have the name"},
		"negative size":  {archive(t, manifest(part(Part{Kind: CPU, Name: "b", Size: -1}))), "more than the limit"},
		"large part":     {archive(t, manifest(part(Part{Kind: CPU, Name: "b", Size: 5 << 20}))), "more than the limit"},
		"large sum": {archive(t, manifest(func(m *Manifest) {
			part(Part{Kind: CPU, Name: "b", Size: 4 << 20})(m)
			part(Part{Kind: Allocs, Name: "c", Size: 4 << 20})(m)
		})), "the parts have more than"},
		"large manifest": {archive(t, manifest(func(m *Manifest) { m.Tool = strings.Repeat("x", 5<<10) })),
			"the manifest has more than"},
		"many files": {archive(t, manifest(func(*Manifest) {}), "a", "", "b", "", "c", "", "d", "", "e", "", "f", "",
			"g", "", "h", ""), "files are more than the limit"},
		"bomb": {archive(t, manifest(func(m *Manifest) { m.Parts[0].Size = 3 << 20 }), "trace.out", zeros),
			"the compression ratio exceeds"},
	} {
		err := readAll(c.data, limits)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := readAll(good, limits); err != nil {
		t.Errorf("the bundle from which they are made: %v", err)
	}
}

// TestEveryTruncationIsRejected: wherever a copy broke off, the rest of the file is not taken for a bundle.
func TestEveryTruncationIsRejected(t *testing.T) {
	good := sample(t)
	for n := range good {
		if readAll(good[:n], DefaultLimits) == nil {
			t.Errorf("the first %d of %d bytes are taken for a bundle", n, len(good))
		}
	}
}

// FuzzReader: whatever the file contains, reading it ends without a panic, and a part that is returned has the size of
// the manifest.
func FuzzReader(f *testing.F) {
	f.Add(sample(f))
	f.Add(archive(f, `{"format":"kumiki-bundle","version":1,"parts":[{"kind":"go-trace","name":"a","size":9}]}`, "a", "x"))
	limits := DefaultLimits
	limits.Part, limits.Total = 1<<20, 2<<20
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readAll(data, limits); err != nil && strings.Contains(err.Error(), "was checked") {
			t.Error(err)
		}
	})
}
