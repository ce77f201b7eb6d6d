// Properties of a terminal.

#ifndef HAWSER_TELEMETRY_TERMINAL_H_
#define HAWSER_TELEMETRY_TERMINAL_H_

namespace hawser::telemetry {

// The number of columns of the terminal behind the descriptor `fd`. 0 if it is
// not a terminal, or a terminal that does not know its width.
int TerminalColumns(int fd);

// Whether lines on `fd` may be redrawn in place: it is a terminal, the
// environment variable TERM is set and not "dumb", and NO_COLOR is unset or
// empty (https://no-color.org).
bool CanRedraw(int fd);

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_TERMINAL_H_
