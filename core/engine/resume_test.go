// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
)

// A history is cut between two inputs. The State of the engine there is encoded and decoded, another engine is resumed
// with it, and both get the inputs that follow: events and questions. The results must be equal, byte for byte, but for
// the path of decisions.

// life is what one engine of a recording got.
type life struct {
	source string
	setup  engineSetup
	steps  []recordingStep // without the engine itself
}

// lives returns the engines of a recording.
func lives(raw []byte) (list []life, err error) {
	source, steps, err := readRecording(raw)
	if err != nil {
		return nil, err
	}
	skipped := false
	for _, s := range steps {
		switch {
		case s.restart():
			var l struct{ Engine engineSetup }
			if err := json.Unmarshal(s.input, &l); err != nil {
				return nil, err
			}
			if skipped = s.models(); !skipped {
				list = append(list, life{source: source, setup: l.Engine})
			}
		case !skipped:
			list[len(list)-1].steps = append(list[len(list)-1].steps, s)
		}
	}
	return list, nil
}

// cutLife is a life that is cut.
type cutLife struct {
	*life
	cut   int             // the number of steps before
	state []byte          // the State of the engine then
	after [][]byte        // the results of each step after the cut
	facts map[string]bool // path of a field -> it is not zero in the State, and a test asks for it
}

// play plays a life, and cuts it at each of the given numbers of steps, which ascend.
func (l *life) play(cuts ...int) (list []*cutLife, err error) {
	p := &player{tape: recording.NewReader(), foreign: &recordedForeign{}}
	if p.engine, err = l.setup.engine(p.foreign); err != nil {
		return nil, err
	}
	for i := range l.steps {
		for len(cuts) > 0 && cuts[0] == i {
			st := p.engine.State()
			list, cuts = append(list, &cutLife{life: l, cut: i, state: recording.AppendState(nil, &st)}), cuts[1:]
		}
		then := resumetest.WithoutPath(p.take(l.steps[i]))
		if bytes.Contains(then, []byte(`{"broken":`)) {
			return list, nil // the engine has stopped in the middle of a step
		}
		for _, c := range list {
			c.after = append(c.after, then)
		}
	}
	return list, nil
}

// resume resumes an engine at the cut, after a change of its State, and returns the first difference of its results;
// empty for none. check is called at the beginning and at the end, and may panic.
func (c *cutLife) resume(change func(*engine.State), check func(*engine.Engine)) (difference string) {
	defer func() {
		if r := recover(); r != nil {
			difference = fmt.Sprint("panic: ", r)
		}
	}()
	p := &player{tape: recording.NewReader(), foreign: &recordedForeign{}}
	cfg, err := c.setup.config(p.foreign)
	if err != nil {
		return err.Error()
	}
	st, err := resumetest.Read(p.tape, c.state, &cfg)
	if err != nil {
		return err.Error()
	}
	change(st)
	if p.engine, err = engine.Resume(cfg, *st); err != nil {
		return err.Error()
	}
	if c.setup.Plain {
		p.engine = engine.Plain(p.engine)
	}
	check(p.engine)
	for i, then := range c.after {
		s := c.steps[c.cut+i]
		if got := resumetest.WithoutPath(p.take(s)); !bytes.Equal(got, then) {
			return fmt.Sprintf("%s, cut at %d of %d, step %d\n%s%s", c.source, c.cut, len(c.steps), c.cut+i, s.input,
				firstLineThatDiffers(then, got))
		}
	}
	check(p.engine)
	return ""
}

// recordedHistories visits the recordings of all sources: at most so many of each, or those of the directory that is given
// by -recordings.
func recordedHistories(t *testing.T, limit int, visit func(raw []byte)) {
	dir := *recordingsDir
	if dir == "" {
		dir = t.TempDir()
		writeTo(t, dir, limit)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tape"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		visit(raw)
	}
}

// TestResumeAnywhere cuts histories of all families at random places, and in the middle.
func TestResumeAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	resumed, failed := 0, 0
	recordedHistories(t, 2, func(raw []byte) {
		all, err := lives(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			l := &all[i]
			middle := len(l.steps) / 2
			cuts, err := l.play(r.IntN(middle+1), middle, middle+r.IntN(middle+1))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cuts {
				resumed++
				if difference := c.resume(resumetest.Keep, engine.Invariants); difference != "" {
					if failed++; failed <= 10 {
						t.Errorf("%s", difference)
					}
				}
			}
		}
	})
	t.Logf("%d engines were resumed, %d differ", resumed, failed)
}
