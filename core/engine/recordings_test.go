// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

var (
	recordingsDir   = flag.String("recordings", "", "directory of recordings of the engine, outside the repository; see TestRecordings")
	writeRecordings = flag.Bool("write", false, "with -recordings: write them")
)

// leastRecordings is the least number of recordings for a comparison.
const leastRecordings = 300

// TestRecordings compares the engine with an earlier commit of it. With -recordings DIR -write it writes recordings
// of every scenario and of a fixed number of random histories of each family. With -recordings DIR it plays the
// events in these files to the engine of today and compares effects and answers byte for byte. Without a directory
// it does both with a few recordings.
//
// A comparison generates no history: the files hold all that is needed. Tests and their helpers may change in between.
func TestRecordings(t *testing.T) {
	switch {
	case *recordingsDir == "":
		dir := t.TempDir()
		writeTo(t, dir, 1)
		compareWith(t, dir)
	case *writeRecordings:
		writeTo(t, *recordingsDir, 0)
	default:
		if n := compareWith(t, *recordingsDir); n < leastRecordings {
			t.Errorf("%s has %d recordings, fewer than %d", *recordingsDir, n, leastRecordings)
		}
	}
}

// recordingSource is where recordings come from.
type recordingSource struct {
	name  string
	files string // pattern of scenarios; empty for histories
	play  func(t *testing.T, script []byte)
	// histories is how many there are of a family.
	histories int
	history   func(t *rapid.T)
}

// recordingSources are all sources. Of each family of histories one in five is recorded of the slow twin too.
func recordingSources() []recordingSource {
	return []recordingSource{
		{name: "scenarios", files: "testdata/*.txt", play: func(t *testing.T, script []byte) { newStory(t).play(script) }},
		{name: "preempt", files: "testdata/preempt/*.txt", play: func(t *testing.T, script []byte) { newRobbing(t).play(script) }},
		{name: "sessions", files: "testdata/sessions/*.txt", play: func(t *testing.T, script []byte) { newSitting(t).play(script) }},
		{name: "whatif", files: "testdata/whatif/*.txt", play: func(t *testing.T, script []byte) { newAsking(t).play(script) }},
		{name: "simulated", files: "testdata/simulated/*.txt", play: func(t *testing.T, script []byte) { newSimulation(t).play(script) }},
		{name: "histories", histories: 30, history: history},
		{name: "other-schedulers", histories: 20, history: besideStrangers},
		{name: "restarts", histories: 20, history: restarts},
		{name: "gangs", histories: 25, history: gangHistory},
		{name: "session-histories", histories: 20, history: sessionHistory},
		{name: "evictions", histories: 25, history: eviction},
		{name: "evictions-units", histories: 30, history: gangEviction},
		{name: "evictions-sessions", histories: 20, history: func(t *rapid.T) { gangEvictionEvery(t, 3*record.Second) }},
		{name: "groups", histories: 40, history: func(t *rapid.T) { groupHistory(t) }},
		{name: "bad-declarations", histories: 25, history: badDeclarations},
		{name: "questions", histories: 15, history: func(t *rapid.T) { askedHistory(t, newWorld(t)) }},
		{name: "extenders", histories: 20, history: extenderHistory},
		{name: "extenders-evictions", histories: 20, history: extenderEviction},
		{name: "extenders-units", histories: 20, history: extenderGangEviction},
		{name: "large-clusters", histories: 15, history: largeClusterHistory},
		{name: "foreign-code", play: func(t *testing.T, _ []byte) { askedAboutUnits(t) }},
		{name: "binding-extender", play: func(t *testing.T, _ []byte) { TestGangsThatAnExtenderBinds(t) }},
		{name: "unproved", play: func(t *testing.T, _ []byte) { unprovedIsTold(t) }},
		{name: "contained-panic", play: func(t *testing.T, _ []byte) { TestOneBadPodHarmsNobodyElse(t) }},
	}
}

// recordedPlay is a recording of the engines that play uses.
func recordedPlay(t *testing.T, source string, slowTwin bool, play func()) []byte {
	t.Helper()
	r := &recordedEngine{plain: slowTwin}
	recorder = r
	defer func() { recorder = nil }()
	play()
	recorder = nil
	text, err := r.text(source)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// recordedHistory is a recording of the history that a family draws from a seed.
func recordedHistory(t *testing.T, s recordingSource, seed int, slowTwin bool) []byte {
	t.Helper()
	name := fmt.Sprintf("%s %d", s.name, seed)
	if slowTwin {
		name += ", slow twin"
	}
	return recordedPlay(t, name, slowTwin, func() {
		tries := 0
		rapid.Custom(func(t *rapid.T) bool {
			if tries++; tries > 1 {
				panic(fmt.Sprintf("history %s fails", name))
			}
			s.history(t)
			return true
		}).Example(seed)
	})
}

// writeTo writes recordings into a directory: all of each source, or at most limit of each if that is above 0.
func writeTo(t *testing.T, dir string, limit int) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if old, err := filepath.Glob(filepath.Join(dir, "*.tape")); err != nil || len(old) > 0 {
		t.Fatalf("there are recordings in %s already (%d, %v): remove them first", dir, len(old), err)
	}
	write := func(source, name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, source+"."+name+".tape"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range recordingSources() {
		files := []string{""}
		if s.files != "" {
			var err error
			if files, err = filepath.Glob(s.files); err != nil || len(files) == 0 {
				t.Fatalf("no scenarios %s: %v", s.files, err)
			}
		}
		for i, file := range files {
			if s.history != nil || limit > 0 && i >= limit {
				break
			}
			var script []byte
			if file != "" {
				var err error
				if script, err = os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			name := "all"
			if file != "" {
				name = strings.TrimSuffix(filepath.Base(file), ".txt")
			}
			write(s.name, name, recordedPlay(t, s.name+" "+name, false, func() { s.play(t, script) }))
		}
		for seed := range s.histories {
			if limit > 0 && seed >= limit {
				break
			}
			write(s.name, fmt.Sprintf("%03d", seed), recordedHistory(t, s, seed, false))
			if seed%5 == 0 {
				write(s.name, fmt.Sprintf("%03d-slow-twin", seed), recordedHistory(t, s, seed, true))
			}
		}
	}
	if limit == 0 {
		t.Logf("wrote recordings to %s", dir)
	}
}

// recordingCount is how much recordings of one source hold.
type recordingCount struct{ recordings, engines, events, questions, differ int }

func (c *recordingCount) add(d recordingCount) {
	c.recordings, c.engines, c.events, c.questions, c.differ = c.recordings+d.recordings, c.engines+d.engines, c.events+d.events, c.questions+d.questions, c.differ+d.differ
}

// compareWith plays all recordings of a directory, and returns their number. It shows the first difference, and
// counts the recordings that differ.
func compareWith(t *testing.T, dir string) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.tape"))
	if err != nil {
		t.Fatal(err)
	}
	counts, total, first := map[string]*recordingCount{}, recordingCount{}, "" // source -> its counts
	var differ []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count, difference := compareRecording(raw)
		if difference != "" {
			count.differ = 1
			if differ = append(differ, filepath.Base(file)); first == "" {
				first = difference
			}
		}
		source, _, _ := strings.Cut(filepath.Base(file), ".")
		if counts[source] == nil {
			counts[source] = &recordingCount{}
		}
		counts[source].add(count)
		total.add(count)
	}
	table := fmt.Sprintf("%-20s %10s %8s %8s %9s %7s\n", "source", "recordings", "engines", "events", "questions", "differ")
	row := func(name string, c recordingCount) {
		table += fmt.Sprintf("%-20s %10d %8d %8d %9d %7d\n", name, c.recordings, c.engines, c.events, c.questions, c.differ)
	}
	for _, source := range sortedKeys(counts) {
		row(source, *counts[source])
	}
	row("all", total)
	t.Logf("recordings in %s\n%s", dir, table)
	if first != "" {
		t.Errorf("%d of %d recordings differ: %s\nthe first of them: %s", total.differ, total.recordings, strings.Join(differ[:min(len(differ), 10)], " "), first)
	}
	return total.recordings
}

// firstLineThatDiffers shows the first result of an input that differs.
func firstLineThatDiffers(recorded, today []byte) string {
	was, is := strings.Split(string(recorded), "\n"), strings.Split(string(today), "\n")
	n := 0
	for n < min(len(was), len(is))-1 && was[n] == is[n] {
		n++
	}
	return fmt.Sprintf("result %d of %d\n--- recorded\n%s\n--- today (%d results)\n%s", n+1, len(was)-1, was[n], len(is)-1, is[n])
}

// compareRecording plays a recording. The difference is that of the first input with other results; empty for none.
func compareRecording(raw []byte) (c recordingCount, difference string) {
	c.recordings = 1
	source, steps, err := readRecording(raw)
	if err != nil {
		return c, err.Error()
	}
	p := &player{}
	skipped := false // the engine of these steps is not compared
	for _, s := range steps {
		if s.restart() {
			skipped = s.models()
		}
		if skipped {
			continue
		}
		what := "question"
		switch {
		case s.restart():
			c.engines++
			what = "engine"
		case s.event():
			c.events++
			what = "event"
		default:
			c.questions++
		}
		if difference != "" {
			continue
		}
		if then := p.take(s); !bytes.Equal(then, s.then) {
			number := map[string]int{"engine": c.engines, "event": c.events, "question": c.questions}[what]
			difference = fmt.Sprintf("%s, %s %d (engine %d, %d events so far)\n%s%s", source, what, number, c.engines, c.events, s.input, firstLineThatDiffers(s.then, then))
		}
	}
	return c, difference
}

// TestRecordingsNoticeChanges: a recording differs if one of its effects or answers does, if an event is left out,
// and if the engine has another seed, does not preempt, or lacks a plugin.
func TestRecordingsNoticeChanges(t *testing.T) {
	text := string(recordedHistory(t, recordingSource{name: "evictions", history: func(t *rapid.T) {
		a := newArena(t, preempt.Config{})
		for i := range 6 {
			a.create(fmt.Sprint("low", i), 0, 2)
		}
		a.settle()
		a.create("high", 9, 4)
		a.settle()
	}}, 1, false))
	if _, difference := compareRecording([]byte(text)); difference != "" {
		t.Fatal(difference)
	}
	for _, c := range []struct{ what, old, by string }{
		{"an effect", `{"effect":"Evict","data":{`, `{"effect":"Evict","data":{"More":1,`},
		{"an answer", `{"answer":{`, `{"answer":{"more":1,`},
		{"an event", `{"event":"Synced","data":{}}` + "\n", ""},
		{"the seed", `{"engine":{"seed":1`, `{"engine":{"seed":2`},
		{"preemption", `"preemption":{},`, ""},
		{"a plugin", `"NodeResourcesFit"`, `"Gone"`},
	} {
		changed := strings.Replace(text, c.old, c.by, 1)
		if changed == text {
			t.Errorf("%s: the recording has no %s", c.what, c.old)
		} else if _, difference := compareRecording([]byte(changed)); difference == "" {
			t.Errorf("%s: the comparison does not notice the change", c.what)
		} else if testing.Verbose() {
			t.Logf("%s: %.300s", c.what, difference)
		}
	}
}
