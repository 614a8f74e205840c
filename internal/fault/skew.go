// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Skew makes the API server's clock differ from the client's, for the client alone: it shifts the times in what the
// client reads by Ahead, and those in what it writes back by as much. So the client reads its own times unchanged, and
// those of the API server and of others as if their clocks were ahead of its own, or behind if Ahead is below 0.
//
// It understands JSON alone: the client's content type must be application/json. Times in the text of a message are
// left as they are.
type Skew struct {
	Ahead time.Duration
	Next  http.RoundTripper
}

// timeInJSON is a time as the API writes it, a whole JSON string. No other string of the API has this form.
var timeInJSON = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z"`)

// RoundTrip implements http.RoundTripper.
func (s Skew) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := whole(r)
	if err != nil {
		return nil, err
	}
	resp, err := s.Next.RoundTrip(with(r.Context(), r, shiftTimes(body, -s.Ahead)))
	if err != nil {
		return nil, err
	}
	if about(r).verb == "watch" && resp.StatusCode == http.StatusOK {
		resp.Body = shiftedLines(s.Ahead, resp.Body)
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", r.Method, r.URL.Path, err)
	}
	text = shiftTimes(text, s.Ahead)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return resp, nil
}

// shiftTimes returns JSON with later times. Their precision stays.
func shiftTimes(text []byte, by time.Duration) []byte {
	return timeInJSON.ReplaceAllFunc(text, func(quoted []byte) []byte {
		old := string(quoted[1 : len(quoted)-1])
		at, err := time.Parse(time.RFC3339Nano, old)
		if err != nil {
			return quoted // a string that only looks like a time
		}
		form := "2006-01-02T15:04:05Z"
		if len(old) > len(form) {
			form = "2006-01-02T15:04:05.000000Z"
		}
		return []byte(strconv.Quote(at.UTC().Add(by).Format(form)))
	})
}

// shiftedLines shifts the times of a watch, one event after the other.
func shiftedLines(by time.Duration, from io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		next := jsonForm{}.reader(from)
		for {
			event, err := next()
			if err == nil {
				_, err = in.Write(jsonForm{}.frame(shiftTimes(event, by)))
			}
			if err != nil {
				_ = from.Close()
				in.CloseWithError(err)
				return
			}
		}
	}()
	return bodyOf{out, from}
}

// bodyOf is a body whose end also ends the one that it is made from.
type bodyOf struct {
	*io.PipeReader
	from io.Closer
}

// Close implements io.Closer.
func (b bodyOf) Close() error {
	_ = b.from.Close()
	return b.PipeReader.Close()
}
