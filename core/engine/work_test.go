// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// workMeter counts work, and nothing else.
type workMeter struct {
	engine.NoMeter
	counts record.WorkCounts
}

func (m *workMeter) Did(work record.Work, n int) { m.counts.Did(work, n) }

// countedRun follows the engines of a test with twins that have a meter. Only recordedStep uses it.
type countedRun struct {
	engine  *engine.Engine // the one that is followed
	twin    *engine.Engine
	meters  []*workMeter // of the twins, in order
	foreign *recordedForeign
	differ  string // the first event whose effects the meter changed
}

// counted is the run that is being counted; nil for none.
var counted *countedRun

// follow gives an event to the twin of an engine.
func (c *countedRun) follow(e *engine.Engine, ev engine.Event, effects []engine.Effect) {
	if c.engine != e {
		c.engine, c.foreign = e, &recordedForeign{}
		setup := setupOf(e)
		cfg, err := setup.config(c.foreign)
		if err != nil {
			panic(err)
		}
		m := &workMeter{}
		cfg.Meter, c.meters = m, append(c.meters, m)
		c.twin = engine.New(cfg)
	}
	want := recording.AppendEffects(nil, effects)
	if answers, err := recording.Answers(bytes.Split(want, []byte("\n"))); err == nil {
		c.foreign.SetAnswers(answers.Answers)
	}
	got := recording.AppendEffects(nil, c.twin.Step(ev))
	if !bytes.Equal(withoutPath(got), withoutPath(want)) && c.differ == "" {
		c.differ = fmt.Sprintf("%T\n%s", ev, firstLineThatDiffers(want, got))
	}
}

// withoutPath removes the path of decisions: questions bring the caches of the engine up to date, which its twin does
// not hear.
func withoutPath(effects []byte) []byte {
	for _, path := range []record.Path{record.Ranked, record.Grouped, record.Scanned} {
		effects = bytes.ReplaceAll(effects, fmt.Appendf(nil, `"path":%q`, path), nil)
		effects = bytes.ReplaceAll(effects, fmt.Appendf(nil, `"Path":%q`, path), nil)
	}
	return effects
}

// replayedWork returns the work of each engine of a recording when its events are played.
func replayedWork(t *testing.T, raw []byte) (meters []*workMeter) {
	t.Helper()
	_, steps, err := readRecording(raw)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{}
	for _, s := range steps {
		switch {
		case s.restart():
			var l struct{ Engine engineSetup }
			if err := json.Unmarshal(s.input, &l); err != nil {
				t.Fatal(err)
			}
			p.tape, p.foreign = recording.NewReader(), &recordedForeign{}
			cfg, err := l.Engine.config(p.foreign)
			if err != nil {
				t.Fatal(err)
			}
			m := &workMeter{}
			cfg.Meter, meters = m, append(meters, m)
			p.engine = engine.New(cfg)
		case s.event():
			if then := p.take(s); !bytes.Equal(withoutPath(then), withoutPath(s.then)) {
				t.Fatalf("with a meter the replay differs: %s", firstLineThatDiffers(s.then, then))
			}
		}
	}
	return meters
}

// TestWorkIsAFunctionOfTheEvents: an engine counts the same work live and in a replay of its recording, and a meter
// changes no effect. Over all families of histories each kind of work occurs.
func TestWorkIsAFunctionOfTheEvents(t *testing.T) {
	var total record.WorkCounts
	for _, s := range recordingSources() {
		if s.history == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			for seed := range 2 {
				counted = &countedRun{}
				raw := recordedHistory(t, s, seed, false)
				live := counted
				counted = nil
				if live.differ != "" {
					t.Fatalf("history %d: a meter changes the effects of %s", seed, live.differ)
				}
				again := replayedWork(t, raw)
				if len(live.meters) != len(again) {
					t.Fatalf("history %d: %d engines live, %d in the replay", seed, len(live.meters), len(again))
				}
				for i, m := range live.meters {
					if m.counts != again[i].counts {
						t.Errorf("history %d, engine %d: live %s, in the replay %s", seed, i, workText(&m.counts), workText(&again[i].counts))
					}
					for kind, n := range m.counts {
						total[kind] += n
					}
				}
			}
		})
	}
	for kind, n := range total {
		if n == 0 {
			t.Errorf("no history has work of the kind %s", record.Work(kind))
		}
	}
	t.Log(workText(&total))
}

// workText lists the kinds of which there was some.
func workText(c *record.WorkCounts) string {
	var parts []string
	for kind, n := range c {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", record.Work(kind), n))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// counting is a scenario whose line `work` prints the work since the last such line. The other lines are those of
// TestScenarios and TestPreemptScenarios; their effects are not printed, except decisions and evictions.
type counting struct {
	robbing
	meter *workMeter
}

func newCounting(t *testing.T) counting {
	p, m := locked(), &workMeter{}
	p.Preemption = &preempt.Config{}
	return counting{robbing{&story{t: t, intake: readingIntake(), pods: map[string]*v1.Pod{}, engine: engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, Meter: m,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})}}, m}
}

func (s counting) play(script []byte) []byte { return s.playBy(script, s.told) }

func (s counting) told(verb string, args []string) {
	if verb == "work" {
		fmt.Fprintf(&s.out, "  %s\n", workText(&s.meter.counts))
		s.meter.counts = record.WorkCounts{}
		return
	}
	before := s.out.Len()
	s.tell(verb, args)
	happened := s.out.String()[before:]
	s.out.Truncate(before)
	for line := range strings.Lines(happened) {
		if strings.HasPrefix(line, "  decision") || strings.HasPrefix(line, "  evict") {
			s.out.WriteString(line)
		}
	}
}

// TestWorkScenarios runs testdata/work/*.txt: exact amounts of work.
func TestWorkScenarios(t *testing.T) {
	playStories(t, "testdata/work/*.txt", func(t *testing.T, script []byte) []byte { return newCounting(t).play(script) })
}
