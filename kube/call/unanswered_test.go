// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// server is an API server whose answers a test gives.
type server struct {
	t       *testing.T
	answers *Answers
	waiting map[string]chan error // path -> takes the answer
}

// RoundTrip waits for the answer that the test gives, or for the end of the request's time.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case err := <-s.waiting[req.URL.Path]:
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// send begins a request that the caller gives up after some time.
func (s *server) send(patience time.Duration, path, query string) {
	s.waiting[path] = make(chan error)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://api"+path+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer cancel()
		if answer, err := s.answers.Observed(s).RoundTrip(req); err == nil {
			answer.Body.Close()
		}
	}()
	synctest.Wait()
}

// answer ends a request; nil is an answer.
func (s *server) answer(path string, err error) {
	s.waiting[path] <- err
	synctest.Wait()
}

// TestRequestsWithoutAnAnswer: since when the API server is silent, and what it was asked. Any answer ends the silence,
// one with an error too.
func TestRequestsWithoutAnAnswer(t *testing.T) {
	const long = time.Hour
	for name, c := range map[string]struct {
		play   func(*server)
		silent time.Duration
		want   Unanswered // without Since
	}{
		"no request": {func(*server) {}, 0, Unanswered{}},
		"under way":  {func(s *server) { s.send(long, "/a", ""); time.Sleep(3 * time.Second) }, 3 * time.Second, Unanswered{Pending: 1, Oldest: "PUT /a"}},
		"answered":   {func(s *server) { s.send(long, "/a", ""); time.Sleep(time.Second); s.answer("/a", nil) }, 0, Unanswered{}},
		"another is answered": {func(s *server) {
			s.send(long, "/a", "")
			time.Sleep(time.Second)
			s.send(long, "/b", "")
			s.answer("/b", nil)
			time.Sleep(2 * time.Second)
		}, 2 * time.Second, Unanswered{Pending: 1, Oldest: "PUT /a"}},
		"given up": {func(s *server) {
			s.send(time.Second, "/a", "")
			time.Sleep(2 * time.Second)
			s.send(long, "/b", "")
			s.send(long, "/c", "")
			time.Sleep(2 * time.Second)
		}, 4 * time.Second, Unanswered{Failed: 1, Pending: 2, Oldest: "PUT /b"}},
		"refused": {func(s *server) {
			s.send(long, "/a", "")
			s.answer("/a", errors.New("connection refused"))
			time.Sleep(time.Second)
		}, time.Second, Unanswered{Failed: 1}},
		"an answer after failures": {func(s *server) {
			s.send(time.Second, "/a", "")
			time.Sleep(2 * time.Second)
			s.send(long, "/b", "")
			s.answer("/b", nil)
		}, 0, Unanswered{}},
		"taken back": {func(s *server) {
			s.send(long, "/a", "")
			s.answer("/a", context.Canceled)
			time.Sleep(time.Second)
		}, 0, Unanswered{}},
		"a watch waits": {func(s *server) { s.send(long, "/a", "?watch=true"); time.Sleep(time.Second) }, 0, Unanswered{}},
		"a watch fails": {func(s *server) { s.send(long, "/a", "?watch=1"); s.answer("/a", errors.New("refused")) }, 0, Unanswered{}},
		"a watch begins": {func(s *server) {
			s.send(long, "/a", "")
			s.send(long, "/w", "?watch=true")
			time.Sleep(time.Second)
			s.answer("/w", nil)
			time.Sleep(time.Second)
		}, time.Second, Unanswered{Pending: 1, Oldest: "PUT /a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				s := &server{t, NewAnswers(clock), map[string]chan error{}}
				c.play(s)
				got := s.answers.Unanswered()
				silent := time.Duration(0)
				if got.Since != 0 {
					silent = time.Duration(clock.Now() - got.Since)
				}
				if got.Since = 0; silent != c.silent || got != c.want {
					t.Errorf("silent for %s, %+v; want %s, %+v", silent, got, c.silent, c.want)
				}
			})
		})
	}
}
