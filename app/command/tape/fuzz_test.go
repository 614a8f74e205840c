// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

var update = flag.Bool("update", false, "write testdata/seeds anew")

// seeds are recordings in testdata/seeds, the hostile ones among them.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/seeds/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d seeds, %v", len(names), err)
	}
	all := map[string][]byte{} // name -> content
	for _, name := range names {
		if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// writeSeeds writes a recording from a start, one from a State, and what a hostile or broken program could make of
// them. A name after "rejected-" is the reason with which a seed is rejected.
func writeSeeds(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	h := newHistory(t)
	start := h.record(filepath.Join(dir, "start"), Options{MaxBytes: DefaultMaxBytes, Segments: 1})
	h.run(0, 5)
	st := h.engine.State()
	fromState, err := CreateFrom(filepath.Join(dir, "state"), DefaultMaxBytes, config.Default(), 5*time.Minute, &st)
	if err != nil {
		t.Fatal(err)
	}
	h.to = append(h.to, fromState)
	h.run(5, 7)
	if err := errors.Join(start.Close(), fromState.Close()); err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	good, resumed := text("start"), text("state")
	events := strings.Index(resumed, `{"state":`)
	events += strings.IndexByte(resumed[events:], '\n') + 1
	for name, seed := range map[string]string{
		"start.tape":                    good,
		"state.tape":                    resumed,
		"clock-set-back.tape":           strings.Replace(good, `{"Now":2000000000}`, `{"Now":-2000000000}`, 1),
		"clock-jumps.tape":              strings.Replace(good, `{"Now":2000000000}`, `{"Now":9223372036854775807}`, 1),
		"hostile-name.tape":             strings.ReplaceAll(good, `"p0"`, `"\u001b[2J\u202e\u0000"`),
		"too-large.tape":                strings.ReplaceAll(good, `8000`, `9223372036854775807`),
		"twice.tape":                    good + good[strings.IndexByte(good, '\n')+1:],
		"last-line-truncated.tape":      good[:len(good)-10],
		"rejected-not-a-recording.tape": strings.Replace(good, "tape", "tame", 1),
		"rejected-unknown-event.tape":   strings.Replace(good, `"event":"Cycle"`, `"event":"Cycles"`, 1),
		"rejected-an-effect-before-the-first-event.tape": good[:strings.IndexByte(good, '\n')+1] + `{"effect":"Wake","data":{}}` + "\n",
		"rejected-ends-before-the-state.tape":            resumed[:events-20],
		"rejected-record-99-of-.tape":                    strings.Replace(resumed, `"Pending":[`, `"Pending":[99,`, 1),
		"rejected-unknown-field.tape":                    strings.Replace(good, `"data"`, `"date"`, 1),
		"rejected-has-no-field-.tape":                    strings.Replace(resumed, `"Synced"`, `"Sunk"`, 1),
		"rejected-no-pod.tape":                           strings.Replace(good, `"event":"PodSet","data":{"Pod":{`, `"event":"PodSet","data":{"Prod":{`, 1),
	} {
		if name != "start.tape" && (seed == good) || name != "state.tape" && seed == resumed {
			t.Errorf("%s changes nothing:\n%s", name, seed)
		}
		if err := os.WriteFile(filepath.Join("testdata/seeds", name), []byte(seed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// errEnough ends a recording that has many events.
var errEnough = errors.New("enough")

// playUntrusted plays what may be anything, as in a file and, with digests, as in a bundle.
func playUntrusted(text, digests []byte) (events int, err error) {
	p := player{note: func(string) {}, f: func(_ *engine.Engine, s Step) error {
		if events++; events > 200 {
			return errEnough
		}
		s.Differs()
		return nil
	}}
	if digests != nil {
		p.digests = bufio.NewReader(bytes.NewReader(digests))
	}
	return events, p.play(bytes.NewReader(text))
}

// FuzzPlay: a recording that may be anything is played or rejected, by itself and in a bundle.
func FuzzPlay(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text, []byte(nil))
		f.Add(text, bytes.Repeat([]byte{0}, 80))
	}
	f.Fuzz(func(t *testing.T, text, digests []byte) {
		playUntrusted(text, nil)
		playUntrusted(text, append([]byte{}, digests...))
		(&eventReader{f: func(engine.Event) {}}).read(bytes.NewReader(text))
	})
}

// TestSeeds: each seed gives what its name says: a number of events, or a reason.
func TestSeeds(t *testing.T) {
	if *update {
		writeSeeds(t)
	}
	for name, text := range seeds(t) {
		events, different := 0, 0
		err := Play(bytes.NewReader(text), app.Plugins{}, func(_ *engine.Engine, s Step) error {
			if events++; s.Differs() {
				different++
			}
			return nil
		})
		if _, reason, bad := strings.Cut(name, "rejected-"); bad {
			reason = strings.ReplaceAll(strings.TrimSuffix(reason, ".tape"), "-", " ")
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "-", " "), reason) {
				t.Errorf("%s: %d events, %v", name, events, err)
			}
		} else if err != nil || events == 0 {
			t.Errorf("%s: %d events, %v", name, events, err)
		}
	}
}

// numbers are numbers in JSON.
var numbers = regexp.MustCompile(`-?[0-9]+`)

// damage changes a recording in one place.
func damage(t *rapid.T, text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	i, j := rapid.IntRange(0, len(lines)-1).Draw(t, "line"), rapid.IntRange(0, len(lines)-1).Draw(t, "other line")
	switch rapid.IntRange(0, 5).Draw(t, "damage") {
	case 0:
		lines = slices.Delete(lines, i, i+1)
	case 1:
		lines = slices.Insert(lines, j, lines[i])
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		if all := numbers.FindAllIndex(lines[i], -1); len(all) > 0 {
			at := rapid.SampledFrom(all).Draw(t, "number")
			other := rapid.SampledFrom([]string{"-1", "0", "1", "7", "1000000", "9223372036854775807", "-9223372036854775808"}).Draw(t, "other")
			lines[i] = slices.Concat(lines[i][:at[0]], []byte(other), lines[i][at[1]:])
		}
	case 4:
		if n := len(lines[i]); n > 0 {
			line := slices.Clone(lines[i])
			line[rapid.IntRange(0, n-1).Draw(t, "byte")] = rapid.Byte().Draw(t, "value")
			lines[i] = line
		}
	case 5:
		lines = lines[:i]
	}
	return bytes.Join(lines, nil)
}

// TestDamagedRecordings: a recording with lines that are missing, twice or in another order, other numbers and other
// bytes is played or rejected, and no event is played that has no line.
func TestDamagedRecordings(t *testing.T) {
	all := seeds(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		text := all[rapid.SampledFrom(names).Draw(t, "seed")]
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			if text = damage(t, text); len(text) == 0 {
				return
			}
		}
		for _, digests := range [][]byte{nil, make([]byte, 8*rapid.IntRange(0, 40).Draw(t, "digests"))} {
			if events, _ := playUntrusted(text, digests); events > bytes.Count(text, []byte(`"event":"`)) {
				t.Fatalf("%d events of\n%s", events, text)
			}
		}
		reader := eventReader{f: func(engine.Event) {}}
		reader.read(bytes.NewReader(text)) // it returns
	})
}

// TestAStateWithoutAPod gives a reason, also where no engine is resumed.
func TestAStateWithoutAPod(t *testing.T) {
	good := seeds(t)["state.tape"]
	for _, hole := range []string{`"Pending":[null,`, `"Edited":[null],"Pending":[`} {
		bad := bytes.Replace(good, []byte(`"Pending":[`), []byte(hole), 1)
		reader := eventReader{f: func(engine.Event) {}}
		if err := reader.read(bytes.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "a pod without a record") {
			t.Errorf("%s: %v", hole, err)
		}
		if _, err := playUntrusted(bad, nil); err == nil {
			t.Errorf("%s: an engine is resumed", hole)
		}
	}
}
