// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
)

// unneeded are the fields of a State that this test does not show to be needed, with the test that does, or the reason.
var unneeded = map[string]string{
	"Answers":                           "TestAnswersBeforeAPanicAreResumed",
	"Blocked.Gangs[].Verdict":           "TestWhyAGangWaitsIsResumed",
	"Cluster.Images":                    "TestImagesKeepTheirFirstSize",
	"Cluster.Mix":                       "TestAbortedMix of core/cluster",
	"Cluster.Resources":                 "TestARestoredStoreIsItsModel of core/cluster: reports list resources in this order",
	"Cluster.Rows[].Pods[].Apart":       "TestAPodThatWasInNoGangStaysSo of core/cluster",
	"Evictions.Charges":                 "TestChargesOfBudgetsAreResumed",
	"Evictions.Charges[].Decision":      "TestChargesOfBudgetsAreResumed",
	"Evictions.Charges[].Preemptor":     "TestChargesOfBudgetsAreResumed",
	"Evictions.Charges[].Victims":       "TestChargesOfBudgetsAreResumed",
	"Evictions.Evictions[].Denominated": "TestLostNominationsAreResumed",
	"Evictions.Evictions[].Order":       "TestTheRestOfVictimsIsResumed",
	"Evictions.Evictions[].Retry":       "TestTheTimeOfTheNextRequestIsResumed",
	"Evictions.Evictions[].WakeAt":      "TestADeferredWakeUpIsResumed",
	"Evictions.Losses[].Last":           "TestLossesAreRemembered",
	"Evictions.Requested":               "TestOwnEvictionsAreNoLosses",
	"Evictions.Swept":                   "TestLossesAreRemembered",
	"Evictions.Synced":                  "TestLossesAreRemembered",
	"Flights[].Retries":                 "TestRetriesOfABindAreResumed",
	"Queue.Asked":                       "TestGatesThatWereAskedBeforeAPanicAreResumed",
	"Queue.Shut":                        "TestGatesThatWereShutBeforeAPanicAreResumed",
	"Queue.Units[].FirstActive":         "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].Flushed":             "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].FlushedAt":           "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].Pending":             "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].Watched":             "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].Watched.Helped":      "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Queue.Units[].Watched.Plugins":     "TestEveryFactOfAUnitIsNeeded of core/queue",
	"Window":                            "TestTheOrderOfNodesIsResumed",
	"Window.Order":                      "TestTheOrderOfNodesIsResumed",
	"Window.Zones":                      "TestTheOrderOfNodesIsResumed",
	"Window.Zones[].Key":                "TestTheOrderOfNodesIsResumed",
	"Window.Zones[].Names":              "TestTheOrderOfNodesIsResumed",
}

// isIdentity reports whether a path is inside a value that is dropped as a whole.
func isIdentity(path string) bool {
	for _, of := range []string{".Gang.", ".Unit.", ".Owner.", ".For[].", ".Budget.", ".Told.", ".Asked.", ".Waits[].",
		".Barred[].", ".Shut[].", ".Waited[].", ".Mix.", "Deferred[].Pod.", "Answers[]."} {
		if strings.Contains(path, of) {
			return true
		}
	}
	return false
}

// witnessFile has, for each field of a State, a recording and a place in it where the field is needed.
const witnessFile = "testdata/resume/witnesses.txt"

var searchWitnesses = flag.Bool("witnesses", false, "with -recordings: search for witnesses of the fields of a State, and write them")

// unchecked accepts every engine: what counts is how it goes on.
func unchecked(*engine.Engine) {}

// witness is a place in a recording: the recording's name, the number of an engine in it, and that of a step.
type witness struct {
	recording   string
	engine, cut int
}

// cutAt plays the engine of a witness in a recording and cuts it there.
func (w witness) cutAt(t *testing.T, raw []byte) *cutLife {
	all, err := lives(raw)
	if err != nil {
		t.Fatal(err)
	}
	if w.engine >= len(all) || w.cut >= len(all[w.engine].steps) {
		return nil
	}
	cuts, err := all[w.engine].play(w.cut)
	if err != nil || len(cuts) == 0 {
		return nil
	}
	return cuts[0]
}

// recordingNamed makes the recording of a name as TestRecordings does.
func recordingNamed(t *testing.T, name string) []byte {
	source, of, _ := strings.Cut(name, ".")
	for _, s := range recordingSources() {
		if s.name != source {
			continue
		}
		if s.history != nil {
			var seed int
			if _, err := fmt.Sscanf(of, "%d", &seed); err != nil {
				t.Fatal(err)
			}
			return recordedHistory(t, s, seed, strings.HasSuffix(of, "-slow-twin"))
		}
		var script []byte
		if s.files != "" {
			var err error
			if script, err = os.ReadFile(filepath.Join(filepath.Dir(s.files), of+".txt")); err != nil {
				return nil
			}
		}
		return recordedPlay(t, s.name+" "+of, false, func() { s.play(t, script) })
	}
	return nil
}

// neededFields are the paths that a test must show to be needed.
func neededFields() []string {
	return slices.DeleteFunc(resumetest.Fields(reflect.TypeFor[engine.State](), ""), func(path string) bool {
		return isIdentity(path)
	})
}

// TestEveryFactIsNeeded makes each field of a State zero, one at a time: the engine of its witness goes on otherwise
// then. So nothing is kept that could be computed, and each field that is not restored is noticed.
//
// If a witness is none any more, because a scenario or a history has changed:
//
//	make recordings-write DIR=../recordings
//	go test ./core/engine -run TestEveryFactIsNeeded -recordings ../recordings -witnesses
func TestEveryFactIsNeeded(t *testing.T) {
	if *searchWitnesses {
		findWitnesses(t)
		return
	}
	raw, err := os.ReadFile(witnessFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]witness{} // path -> where it is needed
	for line := range strings.Lines(string(raw)) {
		var path string
		var w witness
		if _, err := fmt.Sscan(line, &path, &w.recording, &w.engine, &w.cut); err != nil {
			t.Fatalf("%s: %q: %v", witnessFile, line, err)
		}
		known[path] = w
	}
	recordings, cuts := map[string][]byte{}, map[witness]*cutLife{} // name -> recording; place -> the engine there
	for _, path := range neededFields() {
		w, has := known[path]
		if why := unneeded[path]; !has || why != "" {
			if has == (why != "") {
				t.Errorf("%s: witness %v, and %q", path, has, why)
			}
			continue
		}
		if recordings[w.recording] == nil {
			recordings[w.recording] = recordingNamed(t, w.recording)
		}
		if cuts[w] == nil {
			cuts[w] = w.cutAt(t, recordings[w.recording])
		}
		if c := cuts[w]; c == nil {
			t.Errorf("%s: there is no %v any more", path, w)
		} else if c.resume(resumetest.Drop(path), unchecked) == "" {
			t.Errorf("%s: %v goes on alike without it", path, w)
		}
	}
}

// The number of places that are tried for a field: in all, and in one engine.
const (
	triesOfField  = 120
	triesInEngine = 2
	looksAtEngine = 30
)

// findWitnesses searches the recordings of a directory and writes the witnesses.
func findWitnesses(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*recordingsDir, "*.tape"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %q: %v", *recordingsDir, err)
	}
	r := rand.New(rand.NewPCG(2, 2))
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	missing := map[string]bool{} // path -> there is no witness yet
	for _, path := range neededFields() {
		missing[path] = unneeded[path] == ""
	}
	found, tried := map[string]witness{}, map[string]int{} // path -> its witness; path -> the places that were tried
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := lives(raw)
		if err != nil {
			t.Fatal(err)
		}
		before := len(found)
		for i := range all {
			wanted := func(path string) bool { return missing[path] && tried[path] < triesOfField }
			cuts := all[i].cutsFor(t, r, max(1, len(all[i].steps)/looksAtEngine), wanted)
			r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
			here := map[string]int{} // path -> the places that were tried in this engine
			for _, c := range cuts {
				for _, path := range sortedKeys(c.facts) {
					if here[path] == triesInEngine || !missing[path] {
						continue
					}
					here[path]++
					if tried[path]++; c.resume(resumetest.Drop(path), unchecked) != "" {
						missing[path] = false
						found[path] = witness{strings.TrimSuffix(filepath.Base(file), ".tape"), i, c.cut}
					}
				}
			}
		}
		if len(found) > before {
			writeWitnesses(t, found)
		}
	}
	for _, path := range sortedKeys(missing) {
		if missing[path] {
			t.Logf("no witness for %s in %d places", path, tried[path])
		}
	}
}

// rankOf is the order in which recordings are searched: scenarios first, which are short and about single facts, then
// histories.
func rankOf(file string) int {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	at := slices.IndexFunc(recordingSources(), func(s recordingSource) bool { return s.name == name })
	switch s := recordingSources()[at]; {
	case s.history == nil && s.files == "":
		return 2 // a search that takes long
	case s.history != nil || name == "simulated":
		return 1
	}
	return 0
}

// writeWitnesses writes what was found.
func writeWitnesses(t *testing.T, found map[string]witness) {
	text := ""
	for _, path := range sortedKeys(found) {
		w := found[path]
		text += fmt.Sprintf("%s %s %d %d\n", path, w.recording, w.engine, w.cut)
	}
	if err := os.MkdirAll(filepath.Dir(witnessFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(witnessFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cutsFor plays a life, and cuts it where fields are not zero that are wanted, at one of so many steps.
func (l *life) cutsFor(t *testing.T, r *rand.Rand, often int, wanted func(path string) bool) (list []*cutLife) {
	p := &player{tape: recording.NewReader(), foreign: &recordedForeign{}}
	var err error
	if p.engine, err = l.setup.engine(p.foreign); err != nil {
		t.Fatal(err)
	}
	for i := range l.steps {
		if r.IntN(often) == 0 {
			st := p.engine.State()
			facts := resumetest.Facts(&st)
			for path := range facts { // order: each path stands apart
				if isIdentity(path) || !wanted(path) {
					delete(facts, path)
				}
			}
			if len(facts) > 0 {
				list = append(list, &cutLife{life: l, cut: i, state: recording.AppendState(nil, &st), facts: facts})
			}
		}
		then := resumetest.WithoutPath(p.take(l.steps[i]))
		if bytes.Contains(then, []byte(`{"broken":`)) {
			return list // the engine has stopped in the middle of a step
		}
		for _, c := range list {
			c.after = append(c.after, then)
		}
	}
	return list
}
