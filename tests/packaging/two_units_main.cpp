// Every header in two translation units of one program: a function or variable that is defined
// twice does not link. The second unit is a copy of the first one's object file under another name.
extern "C" const void* address_in_unit();
extern "C" const void* address_in_other_unit();

int main() {
  return address_in_unit() == address_in_other_unit() ? 0 : 1;
}
