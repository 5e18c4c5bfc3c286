# SPDX-License-Identifier: GPL-3.0-or-later
#
# The look of every figure: macros (@LINE, @AXES) for its panels, and their places on the page. In front of this,
# figure_script.c writes the sizes (cm) and the numbers of lines used here; behind it, a few commands for each panel.
# Only what gnuplot 5.4 and 6 have in common.

# Colours differ in grey, too; dashes, markers and fills say the same without any colour.
set linetype 1 lc rgb '#1f4e8c' dt solid pt 7 lw 1.1
set linetype 2 lc rgb '#d9722b' dt (10,4) pt 4 lw 1.1
set linetype 3 lc rgb '#2e8b57' dt (3,3) pt 9 lw 1.1
set linetype 4 lc rgb '#8e3b8e' dt (12,3,3,3) pt 12 lw 1.1
set linetype 5 lc rgb '#555555' dt (6,2) pt 6 lw 1.1
set linetype 6 lc rgb '#a88c00' dt (12,3,3,3,3,3) pt 5 lw 1.1
set linetype 7 lc rgb '#1b9aaa' dt (2,4) pt 8 lw 1.1
set linetype 8 lc rgb '#b03060' dt (16,4) pt 13 lw 1.1
set linetype 9 lc rgb '#000000' dt (4,2) pt 1 lw 1.1
set linetype 10 lc rgb '#7fa8d9' dt solid pt 2 lw 1.1
set linetype 11 lc rgb '#6b4c2a' dt (8,3,2,3) pt 3 lw 1.1
set linetype 12 lc rgb '#9acd32' dt (5,3) pt 10 lw 1.1
FILL1 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#1f4e8c'"
FILL2 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#f2bd8f'"
FILL3 = "fs pattern 4 border lt -1 lw 0.5 dt solid lc rgb '#2e8b57'"
FILL4 = "fs pattern 2 border lt -1 lw 0.5 dt solid lc rgb '#8e3b8e'"
FILL5 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#808080'"
FILL6 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#e8dca0'"
FILL7 = "fs empty border lt -1 lw 0.5 dt solid lc rgb '#1b9aaa'"
FILL8 = "fs pattern 5 border lt -1 lw 0.5 dt solid lc rgb '#b03060'"
FILL9 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#333333'"
FILL10 = "fs solid 1.0 border lt -1 lw 0.5 dt solid lc rgb '#c5d9f0'"
FILL11 = "fs pattern 7 border lt -1 lw 0.5 dt solid lc rgb '#6b4c2a'"
FILL12 = "fs pattern 6 border lt -1 lw 0.5 dt solid lc rgb '#6f9a1f'"

# The columns of a block of data are x, y, low, high; of bars also their width; of cells x, y, value.
LINE = "using 1:2 with lines"
MARKED = "using 1:2 with linespoints ps 0.45 pn 7"
LINE_POINTS = "using 1:2 with linespoints ps 0.5"
POINTS = "using 1:2 with points ps 0.5"
DOTS = "using 1:2 with points ps 0.2"
STEPS = "using 1:2 with steps"
BAND = "using 1:3:4 with filledcurves fs transparent solid 0.22 noborder"
BARS = "using 1:2:5 with boxes"
HEAT = "using 1:($2+0*$3):(0.5):(0.5):3 with boxxyerror fs solid 1.0 noborder lc palette"
VALUES = "using 1:($2+0*$3):(digits($3)):(ink($3)) with labels tc rgb variable"
# From the bottom to the top of a panel: the range of y2 is 0 to 1.
VERTICALS = "using 1:(1) axes x1y2 with impulses lc rgb '#b03030' dt (5,4) lw 0.7"
# gnuplot's own error bars leave a hole at the marker.
INTERVAL = "using 1:3:(0):($4-$3) with vectors heads size screen 0.004,90"
THIN = "dt solid lw 0.7"

# Numbers of the y axis take the room of four letters, so that the axes' names of panels line up.
AXES = "set border 3 lw 0.6; set tics nomirror scale 0.5; set y2range [0:1]; set format y '%4g'; " . \
	"set xlabel offset 0,0.5; set ylabel offset 0.5; set grid ytics back lc rgb '#dddddd' lw 0.4 dt 1"
CELLS = "set palette defined (0 '#f2f5fa', 1 '#12305c'); unset colorbox; unset grid; set tics scale 0"
PAGE_TITLE = "screen 0.5, screen 1 - 0.75 * line / height center"
NOTES = "screen edge / width, screen (edge + (lines_of_notes - 0.5) * line) / height left tc rgb '#444444'"
TURNED = "set xtics rotate by 35 right; set xlabel offset 0,0.5+0.3*names_below"
SAID = "tc rgb '#444444' font 'Helvetica,6.5'"
UPRIGHT = "left rotate by 90 front tc rgb '#444444' font 'Helvetica,6.5'"
KEY = "right bottom vertical Left reverse samplen 2 width -1 height 0 spacing 1 noautotitle"

# Three digits, also if the last ones are 0: 24.0 beside 27.9.
digits(v) = sprintf(abs(v) >= 1e6 ? '%.3g' : abs(v) >= 100 ? '%.0f' : abs(v) >= 10 ? '%.1f' : \
	abs(v) >= 1 ? '%.2f' : abs(v) >= 1e-3 ? '%.3f' : '%.3g', v)
# White letters on dark cells.
ink(v) = v > darkest * 0.55 + lightest * 0.45 ? 0xffffff : 0
# The shortest of 1, 2, 5, 10, ... of which at most so many fit. gnuplot's own ticks do not know the
# size of a panel.
step(range, most) = (least = 1.0 * range / most, power = 10 ** floor(log10(least)), times = least / power, \
	power * (times <= 1.001 ? 1 : times <= 2.001 ? 2 : times <= 5.001 ? 5 : 10))
whole_step(range, most) = ceil(step(range, most))

# The page, from the bottom up: notes, rows of panels, title.
line = 0.32
edge = 0.15
below = 0.85 + 0.57 * names_below
between_x = shares_y ? 0.6 : left_of_axes + right_of_axes
between_y = edge + lines_between * line + (shares_x ? 0.2 : below)
bottom = edge + lines_of_notes * line + below
top = bottom + rows * panel_height + (rows - 1) * between_y
width = columns * column_width
height = top + edge + lines_above * line + (has_title ? 1.3 * line : 0)
x_most = (width - left_of_axes - right_of_axes - (columns - 1) * between_x) / columns / 1.1 # ticks
y_most = panel_height / 0.55
up(lines) = 1 + (lines * line + 0.06) / panel_height # `graph` coordinate above a panel
above(n) = up(n - 0.5) # the first of n lines
middle(n) = 0.5 + (n - 1) / 2.0 * line / panel_height

terminal = format eq 'svg' ? 'svg' : format eq 'pdf' ? 'pdfcairo' : 'pngcairo'
if (strstrt(GPVAL_TERMINALS, terminal) == 0) { exit message 'no terminal ' . terminal }
set encoding utf8
if (format eq 'svg') {
	set terminal svg noenhanced fixed rounded background '#ffffff' size width * 96 / 2.54, height * 96 / 2.54 \
		font 'Helvetica,7.5' fontscale 96.0 / 72
}
if (format eq 'pdf') {
	set terminal pdfcairo noenhanced color rounded size width cm, height cm \
		font 'Helvetica,7.5' fontscale 0.75 linewidth 1.4
}
if (format eq 'png') {
	set terminal pngcairo noenhanced color rounded pointscale 3 dashlength 2 \
		size width * 300 / 2.54, height * 300 / 2.54 \
		font 'Helvetica,7.5' fontscale 300.0 / 96 linewidth 300.0 / 96
}
if (exists('output')) { set output output }
set multiplot layout rows, columns \
	margins left_of_axes / width, 1 - right_of_axes / width, bottom / height, top / height \
	spacing screen between_x / width, screen between_y / height
