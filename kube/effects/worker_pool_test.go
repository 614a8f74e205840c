// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/kube/call"
)

// shift is a crew whose jobs are numbers of a pod, and which notes what it begins and ends.
type shift struct {
	*workerPool[int]
	mu    sync.Mutex
	jobs  []int // that were begun, in order
	under int   // way
	most  int   // under way at once
}

// newShift returns a crew whose jobs take a second each.
func newShift(ctx context.Context, limit int) *shift {
	m, _ := counted()
	s := &shift{workerPool: newWorkerPool[int](ctx, nil, m, "test", limit)}
	s.do = func(job int) {
		s.mu.Lock()
		s.jobs = append(s.jobs, job)
		s.under++
		s.most = max(s.most, s.under)
		s.mu.Unlock()
		call.Sleep(s.ctx, time.Second)
		s.mu.Lock()
		s.under--
		s.mu.Unlock()
	}
	return s
}

// begun are the jobs that were begun, in order.
func (s *shift) begun() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.jobs)
}

// TestACrewWorksSideBySideUpToTheLimit: jobs of different pods go at once, those of one pod one after the other, in
// order. Catches a worker that leaves its lane in ready (two jobs of a pod at once), and start without the limit.
func TestACrewWorksSideBySideUpToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t.Context(), 7)
		for i := range 20 {
			s.add(fmt.Sprint(i), i)
		}
		synctest.Wait()
		if len(s.begun()) != 7 || s.InFlight() != 7 {
			t.Errorf("%d jobs were begun and %d are in flight, want 7 of each", len(s.begun()), s.InFlight())
		}
		s.workers.Wait()
		if len(s.begun()) != 20 || s.InFlight() != 0 || len(s.lanes) != 0 {
			t.Errorf("%d of 20 jobs were begun, %d are in flight, %d lanes are kept", len(s.begun()), s.InFlight(), len(s.lanes))
		}
		one := newShift(t.Context(), 7)
		for i := range 5 {
			one.add("p", i)
		}
		one.workers.Wait()
		if one.most != 1 || fmt.Sprint(one.begun()) != "[0 1 2 3 4]" {
			t.Errorf("the jobs of one pod went %v, up to %d at once", one.begun(), one.most)
		}
	})
}

// TestADrainLetsBegunJobsEnd: and drops the others, however many a pod has. Catches a drain that waits for no one, and
// one that counts lanes in place of jobs.
func TestADrainLetsBegunJobsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t.Context(), 2)
		for i := range 9 {
			s.add(fmt.Sprint(i%3), i)
		}
		synctest.Wait()
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if dropped := s.drain(patience); dropped != 7 || len(s.begun()) != 2 || s.InFlight() != 0 || patience.Err() != nil {
			t.Errorf("%d were dropped, %d begun, %d are in flight, out of patience: %v", dropped, len(s.begun()), s.InFlight(), patience.Err())
		}
		hasty := newShift(t.Context(), 2)
		hasty.add("p", 1)
		synctest.Wait()
		if hasty.drain(call.Expired()); hasty.InFlight() != 0 {
			t.Error("a drain out of patience left work behind")
		}
		s.add("late", 0)
		s.Hold(false)
		s.workers.Wait() // nothing was started
		if len(s.begun()) != 2 {
			t.Error("a job was begun after the end")
		}
	})
}

// TestNothingIsBegunWhileHeldOrWithoutTheLease: what waits can be withdrawn, and goes on when it may. Catches a pool
// that begins a job first and then waits for the lease: the job could not be withdrawn.
func TestNothingIsBegunWhileHeldOrWithoutTheLease(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(s *shift) (goOn func())
	}{
		{"held", func(s *shift) func() {
			s.Hold(true)
			return func() { s.Hold(false) }
		}},
		{"without the lease", func(s *shift) func() {
			renewed := make(chan struct{})
			s.lead = func() bool {
				select {
				case <-renewed:
					return true
				default:
					return false
				}
			}
			return func() { close(renewed) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShift(t.Context(), 3)
				goOn := c.stop(s)
				for i := range 6 {
					s.add(fmt.Sprint(i), i)
				}
				time.Sleep(time.Minute)
				if len(s.begun()) != 0 || s.InFlight() != 0 {
					t.Fatalf("%d jobs were begun", len(s.begun()))
				}
				for i := range 6 {
					if got := s.takeBack(fmt.Sprint(i), func(job int) bool { return job != 4 }); got != (i != 4) {
						t.Errorf("job %d taken back: %v", i, got)
					}
				}
				goOn()
				time.Sleep(time.Second / 2)
				if fmt.Sprint(s.begun()) != "[4]" || s.takeBack("4", func(int) bool { return true }) {
					t.Errorf("%v was begun, or a job that was begun was taken back", s.begun())
				}
				s.add("0", 7)
				s.workers.Wait()
				if fmt.Sprint(s.begun()) != "[4 7]" || len(s.lanes) != 0 {
					t.Errorf("%v was begun; %d lanes are kept", s.begun(), len(s.lanes))
				}
			})
		})
	}
}

// TestHoldingLetsBegunJobsEndAlone catches a worker that takes the next job although it is held.
func TestHoldingLetsBegunJobsEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t.Context(), 1)
		s.add("a", 0)
		s.add("b", 1)
		synctest.Wait()
		s.Hold(true)
		time.Sleep(time.Minute)
		if fmt.Sprint(s.begun()) != "[0]" || s.InFlight() != 0 {
			t.Errorf("%v was begun, %d in flight", s.begun(), s.InFlight())
		}
		s.Hold(false)
		s.workers.Wait()
	})
}

// TestEachJobIsBegunOnceOrTakenBackOnce plays random histories of a crew against a plain count. Catches a job that is
// lost or done twice when holding, taking back and adding meet: takeBack of a lane's only job that forgets the lane,
// say.
func TestEachJobIsBegunOnceOrTakenBackOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShift(t.Context(), rapid.IntRange(1, 3).Draw(r, "limit"))
			ended := map[int]int{} // job -> how often it was begun or withdrawn
			do := s.do
			s.do = func(job int) {
				s.mu.Lock()
				ended[job]++
				s.mu.Unlock()
				do(job)
			}
			jobs := rapid.IntRange(1, 30).Draw(r, "jobs")
			for i := range jobs {
				s.add(fmt.Sprint(i%4), i)
				switch rapid.IntRange(0, 4).Draw(r, "and then") {
				case 0:
					s.Hold(rapid.Bool().Draw(r, "hold"))
				case 1:
					which := rapid.IntRange(0, i).Draw(r, "take back")
					if s.takeBack(fmt.Sprint(which%4), func(job int) bool { return job == which }) {
						s.mu.Lock()
						ended[which]++
						s.mu.Unlock()
					}
				case 2:
					time.Sleep(700 * time.Millisecond)
				}
			}
			s.Hold(false)
			s.workers.Wait()
			for i := range jobs {
				if ended[i] != 1 {
					r.Fatalf("job %d ended %d times", i, ended[i])
				}
			}
			if len(s.lanes) != 0 || s.running != 0 || s.InFlight() != 0 {
				r.Fatalf("%d lanes, %d workers and %d jobs are left", len(s.lanes), s.running, s.InFlight())
			}
		})
	})
}
