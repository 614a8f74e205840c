// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// changeOfMany is one step in a life of many pods of few kinds that wait.
type changeOfMany struct {
	Update   bool
	Pod, CPU int // of an update: which pod asks for how much from now on
	Prio     int // of an event: only pods up to this priority are meant, if it is below 3
}

var changesOfMany = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) changeOfMany {
	return changeOfMany{rapid.Bool().Draw(t, "update"), number(t, 12), number(t, 4), number(t, 6)}
}), 1, 20)

// manyOfFew is 12 pods of three kinds, rejected by Fit, whose hint is asked once for pods that are alike or about each.
func manyOfFew(alike bool) (*Queue, []attributes) {
	fits := wakesOf("Fit", "Node/Add", "fits")
	fits.Wakes[0].Alike = alike
	q := New(Config{Profiles: map[string]Profile{"": {Wakes: []PluginWakes{fits}}}, UnschedulableTimeout: 1 << 40})
	q.Tick(epoch)
	pods := make([]attributes, 12)
	for i := range pods {
		pods[i] = attributes{"cpu": fmt.Sprint(500 * (i%3 + 1)), "prio": fmt.Sprint(i % 3)}
		q.Add(pods[i].pod(fmt.Sprint("p", i), 1))
	}
	for range pods {
		u, _ := q.Pop()
		q.Requeue(u, Rejection{Plugins: []string{"Fit"}})
	}
	q.TakeMoves()
	return q, pods
}

// playMany tells what moved after each step.
func playMany(alike bool, changes []changeOfMany) (told []string) {
	q, pods := manyOfFew(alike)
	for rv, c := range changes {
		if c.Update {
			name := fmt.Sprint("p", c.Pod)
			old := pods[c.Pod].pod(name, rv+1)
			pods[c.Pod]["cpu"] = fmt.Sprint(500 * (c.CPU + 1))
			q.Update(old, pods[c.Pod].pod(name, rv+2))
		} else {
			ch := happened("Node/Add", int64(500*c.CPU))
			if prio := int32(c.Prio); prio < 3 {
				ch.OnlyUpTo = &prio
			}
			q.Happened(ch)
		}
		for _, m := range q.TakeMoves() {
			told = append(told, fmt.Sprintf("%d: %s %s %s %s", rv, m.Pod.Name, m.To, m.Hint, m.Cause))
		}
	}
	return told
}

func alikeDiffers(changes []changeOfMany) error {
	once, each := playMany(true, changes), playMany(false, changes)
	if !slices.Equal(once, each) {
		return fmt.Errorf("asked once %q, asked about each %q", once, each)
	}
	return nil
}

// TestPodsThatAreAlikeAreAskedAboutOnce, and what that answers is what asking about each would. Catches the mutant that
// forgets that a pod has changed, and an answer that counts for pods of another priority.
func TestPodsThatAreAlikeAreAskedAboutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := alikeDiffers(changesOfMany.Draw(t, "changes")); err != nil {
			t.Fatal(err)
		}
	})
	q, _ := manyOfFew(true)
	asked := &asks{}
	q.cfg.Meter = asked
	q.Happened(happened("Node/Add", 0))
	if asked.n != 3 {
		t.Errorf("asked %d times about 12 pods of 3 kinds", asked.n)
	}
}

// asks counts questions.
type asks struct {
	noMeter
	n int
}

func (a *asks) Ask() { a.n++ }
