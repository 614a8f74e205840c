// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// pieces is a body that arrives in pieces, one for each read. It counts the reads.
type pieces struct {
	left   []string
	end    error
	reads  int
	closed bool
}

func (p *pieces) Read(into []byte) (int, error) {
	p.reads++
	if len(p.left) == 0 {
		return 0, p.end
	}
	n := copy(into, p.left[0])
	if p.left[0] = p.left[0][n:]; p.left[0] == "" {
		p.left = p.left[1:]
	}
	return n, nil
}

func (p *pieces) Close() error { p.closed = true; return nil }

// answering answers every request with a body.
type answering struct {
	code int
	body io.ReadCloser
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Body: a.body}, nil
}

func bodyOf(t *testing.T, method, url string, code int, body io.ReadCloser) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := readsAhead{answering{code, body}}.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// TestAWatchIsReadInLargePieces: small reads of what has arrived together are one read of the connection, and a read
// does not wait for what has not arrived. Fault: watchInSmallReads.
func TestAWatchIsReadInLargePieces(t *testing.T) {
	broken := errors.New("connection lost")
	p := &pieces{left: []string{"the first event, the second event, ", "third"}, end: broken}
	body := bodyOf(t, http.MethodGet, "https://server/api/v1/pods?watch=1", http.StatusOK, p)
	read := func(n int) string {
		into := make([]byte, n)
		n, err := body.Read(into)
		if err != nil {
			t.Fatal(err)
		}
		return string(into[:n])
	}
	if got := read(17) + "|" + read(18); got != "the first event, |the second event, " || p.reads != 1 {
		t.Errorf("got %q in %d reads of the connection, want one", got, p.reads)
	}
	if got := read(100); got != "third" || p.reads != 2 {
		t.Errorf("got %q in %d reads, want what has arrived in two", got, p.reads)
	}
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, broken) {
		t.Errorf("the end of the connection is %v", err)
	}
	if err := body.Close(); err != nil || !p.closed {
		t.Errorf("closed %v: %v", p.closed, err)
	}
}

// TestOnlyWatchesAreReadAhead: lists, writes and failures keep their bodies.
func TestOnlyWatchesAreReadAhead(t *testing.T) {
	for _, c := range []struct {
		method, query string
		code          int
		ahead         bool
	}{
		{http.MethodGet, "watch=true", http.StatusOK, true},
		{http.MethodGet, "watch=1&resourceVersion=5", http.StatusOK, true},
		{http.MethodGet, "watch=false", http.StatusOK, false},
		{http.MethodGet, "", http.StatusOK, false},
		{http.MethodPost, "watch=1", http.StatusOK, false},
		{http.MethodGet, "watch=1", http.StatusGone, false},
	} {
		p := io.NopCloser(strings.NewReader(""))
		body := bodyOf(t, c.method, "https://server/api/v1/pods?"+c.query, c.code, p)
		if _, ahead := body.(aheadBody); ahead != c.ahead {
			t.Errorf("%s %s, %d: read ahead %v, want %v", c.method, c.query, c.code, ahead, c.ahead)
		}
	}
}
