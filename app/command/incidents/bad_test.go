// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestAFullDiskKeepsWhatIsThere: a bundle that cannot be written to its end costs no older one, leaves no file, and is
// in memory.
func TestAFullDiskKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	c := newCluster(t, Options{Dir: dir, MaxFiles: 1, MaxBytes: 1 << 30})
	c.run(5, "p", false)
	_, first := c.write()
	c.store.create = func() (*os.File, error) {
		full := filepath.Join(dir, unfinished+"full") // a link, which is removed, to a device that is always full
		if err := os.Symlink("/dev/full", full); err != nil {
			return nil, err
		}
		return os.OpenFile(full, os.O_WRONLY, 0)
	}
	_, second := c.write()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != first.ID+extension || second.File != "" {
		t.Errorf("%v (%v), the second is in %q", files, err, second.File)
	}
	if got := ids(c.store.List()); got != first.ID+" "+second.ID {
		t.Errorf("listed: %s", got)
	}
}

// TestARestartMeanwhile: what a process that was killed did not finish is removed by a later one, but not what another
// process may be writing. A bundle of the same second gets another name, also after the clock was set back.
func TestARestartMeanwhile(t *testing.T) {
	o := Options{Dir: t.TempDir(), MaxFiles: 10, MaxBytes: 1 << 30}
	for name, age := range map[string]time.Duration{unfinished + "old": 2 * abandoned, unfinished + "new": 0, "other": 2 * abandoned} {
		path := filepath.Join(o.Dir, name)
		if err := os.WriteFile(path, []byte("PK"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{} // ID -> there is a bundle
	for range 3 {
		c := newCluster(t, o)
		c.run(2, "p", false)
		_, in := c.write()
		if seen[in.ID] {
			t.Errorf("%s is written again", in.ID)
		}
		seen[in.ID] = true
	}
	files, err := os.ReadDir(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); len(files) != 5 || !strings.HasPrefix(got, unfinished+"new ") || !strings.HasSuffix(got, " other") {
		t.Errorf("the directory has %s", got)
	}
}

// noise returns bytes that do not compress well, so that they do not look like a zip bomb.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// TestBadReports: each gives a reason, and no value of it is shown.
func TestBadReports(t *testing.T) {
	c := newCluster(t, Options{})
	c.run(10, "p", false)
	good, in := c.write()
	with := func(change func(*record.Incident)) []byte {
		bad := in
		change(&bad)
		text, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for want, text := range map[string][]byte{
		"is not the ID of an incident":   with(func(in *record.Incident) { in.ID = "\x1b[2J" }),
		"counts -1 events":               with(func(in *record.Incident) { in.Events = -1 }),
		"after -1":                       with(func(in *record.Incident) { in.Before = -1 }),
		"is negative: -1s":               with(func(in *record.Incident) { in.Took = -time.Second }),
		"cannot unmarshal":               []byte(`{"events":"many"}`),
		"unexpected end":                 []byte(`{"id":"`),
		"it has more than 4194304 bytes": append(with(func(*record.Incident) {}), noise(maxReport)...),
	} {
		name := rewrite(t, good, bundle.Incident, func([]byte) []byte { return text })
		if got, err := Read(name); err == nil || !strings.Contains(err.Error(), want) || got != (record.Incident{}) {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	name := rewrite(t, good, bundle.Incident, func([]byte) []byte { return with(func(in *record.Incident) { in.Events++ }) })
	more, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(name, app.Plugins{}, more); err == nil || !strings.Contains(err.Error(), "the report counts") {
		t.Errorf("a report with an event too many: %v", err)
	}
}

// FuzzReport: a report that may be anything is read or rejected, and one that is read has no negative number.
func FuzzReport(f *testing.F) {
	seeds, err := filepath.Glob("testdata/reports/*.json")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%d seeds, %v", len(seeds), err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := parse(text)
		if err == nil && (in.Events < 0 || in.Before < 0 || in.Took < 0 || in.Size < 0 || !plainID.MatchString(in.ID)) {
			t.Errorf("%+v", in)
		}
	})
}
