// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"time"
)

// Fate is what becomes of a request. The zero value changes nothing.
type Fate struct {
	// Wait passes before anything else happens.
	Wait time.Duration
	// Apply says whether the API server gets the request.
	Apply Apply
	// Later is how long after the reply a request that is applied Late reaches the API server.
	Later time.Duration
	// Reply is the answer that the client receives.
	Reply Reply
	// Code is the HTTP status of a reply of our own.
	Code int
	// RetryAfter is the header of that name, in whole seconds, not sent when it is 0.
	RetryAfter time.Duration
}

// Apply says whether the API server gets a request.
type Apply uint8

// The ways to apply.
const (
	Once  Apply = iota // before the reply, as always
	Never              // it never arrives
	Late               // it arrives after the reply, whatever becomes of the client
)

// Reply is an answer that a client may receive.
type Reply uint8

// The replies.
const (
	Theirs  Reply = iota // what the API server says
	Status               // a status of our own
	Silence              // nothing, while the connection stays; it is cut when the rule goes away
	Cut                  // the connection is closed
)

// TooMany refuses with 429.
func TooMany(retryAfter time.Duration) Fate {
	return Fate{Apply: Never, Reply: Status, Code: http.StatusTooManyRequests, RetryAfter: retryAfter}
}

// ErrorBefore answers with a code in place of carrying the request out.
func ErrorBefore(code int) Fate { return Fate{Apply: Never, Reply: Status, Code: code} }

// ErrorAfter carries the request out and then answers with a code.
func ErrorAfter(code int) Fate { return Fate{Apply: Once, Reply: Status, Code: code} }

// SilentBefore swallows the request.
func SilentBefore() Fate { return Fate{Apply: Never, Reply: Silence} }

// SilentAfter carries the request out and swallows the answer.
func SilentAfter() Fate { return Fate{Apply: Once, Reply: Silence} }

// AppliedLater answers at once that the time was up, and carries the request out after d.
func AppliedLater(d time.Duration) Fate {
	return Fate{Apply: Late, Later: d, Reply: Status, Code: http.StatusGatewayTimeout}
}

// Slow lets the request wait.
func Slow(d time.Duration) Fate { return Fate{Wait: d} }

// CutBefore closes the connection before the request is carried out, CutAfter after.
func CutBefore() Fate { return Fate{Apply: Never, Reply: Cut} }

// CutAfter closes the connection after the request was carried out.
func CutAfter() Fate { return Fate{Apply: Once, Reply: Cut} }

// Twist is what becomes of an event. The zero value changes nothing.
type Twist struct {
	Kind Kind
	// Behind is how many events of other objects pass a Held one first; For is how long it waits for them at most.
	// An event of the same object never passes it. For is also how long a Stalled watch waits.
	Behind int
	For    time.Duration
}

// Kind is one way to twist an event.
type Kind uint8

// The twists.
const (
	Pass    Kind = iota
	Dropped      // it is lost, and nothing says so
	Twice        // it comes twice
	Held         // others come first
	Stalled      // it waits, and all behind it
	Garbled      // its bytes cannot be decoded
)

// Drop loses the event.
func Drop() Twist { return Twist{Kind: Dropped} }

// Duplicate brings the event twice.
func Duplicate() Twist { return Twist{Kind: Twice} }

// Hold lets n events of other objects pass, or d.
func Hold(n int, d time.Duration) Twist { return Twist{Kind: Held, Behind: n, For: d} }

// Stall lets the event and all behind it wait.
func Stall(d time.Duration) Twist { return Twist{Kind: Stalled, For: d} }

// Garble makes the event undecodable.
func Garble() Twist { return Twist{Kind: Garbled} }

// End is how a watch is ended.
type End uint8

// The ends.
const (
	Closed  End = iota // as if its time were up
	Expired            // by an ERROR event with 410: the version is too old
	Severed            // in the middle of it, with an error on the connection
)
