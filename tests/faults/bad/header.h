#pragma once
int sum(int x, int y) {
  int q = x + y;
  q = 2 * q;
  return x + q;
}
